"""From times of two sides to a verdict. Pure: no clock, no processes.

Trials run in the order A B B A A B B A ..., so neighbours make pairs of two kinds: every first pair of neighbours holds
one of each side (a test pair), every second one holds the same side twice (a null pair). Null pairs suffer the same
noise at the same time and tell what the machine makes of no difference at all.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from perflint.verify.results import Verdict

#: Share of pairs left out at each end: a neighbour on the machine spoils single trials, not the middle of them.
TRIM = 0.2
CONFIDENCE = 0.95
_RESAMPLES = 1000
#: A trial is disturbed when the machine was this much slower around it than in the middle trial of the run.
_DISTURBED = 1.3
#: So many trials say what is usual on the machine.
_ENOUGH_TO_KNOW = 8
#: Fewer pairs than this allow no verdict: intervals over them are too narrow to be true.
FEWEST_PAIRS = 6


@dataclass(frozen=True, slots=True)
class Interval:
    """A ratio with its confidence interval; 1 is no change."""

    middle: float
    low: float
    high: float

    @property
    def reach(self) -> float:
        """How far the interval reaches from 1, as a factor of at least 1."""
        return max(self.high, 1 / self.low, 1.0)

    @property
    def width(self) -> float:
        """Upper over lower end."""
        return self.high / self.low


@dataclass(frozen=True, slots=True)
class Reading:
    """What one trial gave: the seconds of one run of the workload, and those of a fixed piece of work beside it."""

    seconds: float
    spin: float = 0.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """`ratio` is before over after. `noise` is the reach of the same side against itself."""

    verdict: Verdict
    ratio: Interval
    noise: float
    pairs: int
    disturbed: int

    def is_settled(self, precision: float) -> bool:
        """Whether more trials would say nothing new: what is there is known to within `precision`, noise included."""
        if self.verdict is Verdict.NO_DIFFERENCE:
            return self.ratio.reach * self.noise <= 1 + 2 * precision
        return math.sqrt(self.ratio.width) <= 1 + 2 * precision or self.is_plain

    @property
    def is_plain(self) -> bool:
        """Whether the effect is so large that its exact size does not matter."""
        distance = max(self.ratio.low, 1 / self.ratio.high)
        return distance >= 1.5 * self.noise and self.ratio.width <= distance


def judge(before: Sequence[Reading], after: Sequence[Reading]) -> Judgement | None:
    """Judge trials in the order in which `turns` has them; None while there are too few undisturbed pairs."""
    disturbed = _disturbed([*before, *after])
    tests, nulls = _pairs(before, after, disturbed)
    if len(tests) < FEWEST_PAIRS or len(nulls) < FEWEST_PAIRS - 1:
        return None
    ratio = interval(tests)
    noise = interval(nulls).reach
    return Judgement(_verdict(ratio, noise), ratio, noise, len(tests), len(disturbed))


def turns(blocks: int) -> list[bool]:
    """Whose turn it is, False for before: A B B A, again and again."""
    return [False, True, True, False] * blocks


def _verdict(ratio: Interval, noise: float) -> Verdict:
    if ratio.low > noise:
        return Verdict.FASTER
    if ratio.high < 1 / noise:
        return Verdict.SLOWER
    return Verdict.NO_DIFFERENCE


def _pairs(before: Sequence[Reading], after: Sequence[Reading], disturbed: set[int]) -> tuple[list[float], list[float]]:
    """Logarithms of ratios of neighbours: before over after, and the earlier over the later of one side."""
    order = turns((len(before) + len(after) + 3) // 4)
    sides = (iter(before), iter(after))
    run = [(side, reading) for side, reading in ((side, next(sides[side], None)) for side in order) if reading]
    tests, nulls = [], []
    for (side, one), (other_side, other) in pairwise(run):
        if id(one) in disturbed or id(other) in disturbed:
            continue
        change = math.log(one.seconds / other.seconds)
        if side == other_side:
            nulls.append(change)
        else:
            tests.append(-change if side else change)
    return tests, nulls


def _disturbed(readings: Sequence[Reading]) -> set[int]:
    """Readings (by identity) around which the machine itself was slow, whichever side ran."""
    spins = [reading.spin for reading in readings if reading.spin > 0]
    if len(spins) < _ENOUGH_TO_KNOW:
        return set()
    usual = statistics.median(spins)
    return {id(reading) for reading in readings if reading.spin > _DISTURBED * usual}


def interval(changes: Sequence[float]) -> Interval:
    """Trimmed mean of logarithms of ratios with its bootstrap interval, as ratios."""
    if min(changes) == max(changes):
        only = math.exp(changes[0])
        return Interval(only, only, only)
    import numpy as np
    from scipy import stats

    def middle(sample: Any, axis: int = -1) -> Any:
        return stats.trim_mean(sample, TRIM, axis=axis)

    data = np.asarray(changes)
    found = stats.bootstrap(
        (data,),
        middle,
        n_resamples=_RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        vectorized=True,
        # A fixed seed: the same times give the same verdict.
        random_state=np.random.default_rng(0),
    ).confidence_interval
    return Interval(math.exp(float(middle(data))), math.exp(float(found.low)), math.exp(float(found.high)))
