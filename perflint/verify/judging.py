"""From times of two sides to a verdict. Pure: no clock, no processes.

Four processes make a group, in the order A B B A: two test pairs (one of each side) and two null pairs (one side
twice). They take their blocks in turn, so the blocks of one round are neighbours in time and a pair's ratio is taken
round by round. A pair counts once, however many rounds it has: what differs from process to process, such as where
memory came to lie, is no smaller for being looked at for longer. Null pairs suffer the same noise at the same time and
tell what the machine makes of no difference at all.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from perflint.verify.results import Verdict

#: Share of pairs left out at each end: a neighbour on the machine spoils single trials, not the middle of them.
TRIM = 0.2
CONFIDENCE = 0.95
_RESAMPLES = 1000
#: A process is disturbed when the machine was this much slower around it than around the middle one of the run.
_SLOWER = 1.3
#: So many processes say what is usual on the machine.
_ENOUGH_TO_KNOW = 8
#: A round is disturbed when its ratio is this many (robust) standard deviations off those of the others.
_FAR_OFF = 5.0
#: What turns the median distance from a median into a standard deviation, where noise is normal.
_TO_DEVIATION = 1.4826
#: Fewer rounds than this cannot say which of them is off.
_FEWEST_ROUNDS = 5
#: Fewer pairs than this allow no verdict: intervals over them are too narrow to be true.
FEWEST_PAIRS = 6
#: The sides of a group, False for before.
ORDER = (False, True, True, False)


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
class Block:
    """Seconds of one run of the workload. `disturbed`: the system took the processor away meanwhile."""

    seconds: float
    disturbed: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What one process gave: a block for each round, and the seconds of a fixed piece of work beside it."""

    blocks: tuple[Block, ...]
    spin: float = 0.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """`ratio` is before over after, `noise` the reach of the same side against itself.

    `rounds` are the comparisons of one block with another behind `pairs`; `disturbed` of them were noticed as such and
    left out, unless most were: then there is nothing to hold them against, and `crowded` says so.
    """

    verdict: Verdict
    ratio: Interval
    noise: float
    pairs: int
    rounds: int
    disturbed: int
    crowded: bool = False

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


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two processes against each other: the logarithm of the ratio of their times."""

    change: float
    rounds: int
    disturbed: int
    crowded: bool


def judge(groups: Iterable[Sequence[Reading]]) -> Judgement | None:
    """Judge groups in `ORDER`, the last maybe incomplete; None while there are too few undisturbed pairs."""
    found = list(groups)
    slow = _beside_a_slow_machine([reading for group in found for reading in group])
    tests: list[_Pair] = []
    nulls: list[_Pair] = []
    for group in found:
        for (one, other), is_test in _PAIRS.items():
            if max(one, other) < len(group) and not {id(group[one]), id(group[other])} & slow:
                (tests if is_test else nulls).append(_pair(group[one], group[other]))
    if len(tests) < FEWEST_PAIRS or len(nulls) < FEWEST_PAIRS - 1:
        return None
    ratio = interval([pair.change for pair in tests])
    noise = interval([pair.change for pair in nulls]).reach
    rounds, disturbed = sum(pair.rounds for pair in tests), sum(pair.disturbed for pair in tests)
    crowded = 2 * sum(pair.crowded for pair in tests) > len(tests)
    return Judgement(_verdict(ratio, noise), ratio, noise, len(tests), rounds, disturbed + len(slow), crowded)


#: Places in `ORDER`, and whether they hold the two sides or one of them twice. A test pair is before and after.
_PAIRS = {(0, 1): True, (1, 2): False, (3, 2): True, (0, 3): False}


def _verdict(ratio: Interval, noise: float) -> Verdict:
    if ratio.low > noise:
        return Verdict.FASTER
    if ratio.high < 1 / noise:
        return Verdict.SLOWER
    return Verdict.NO_DIFFERENCE


def _pair(one: Reading, other: Reading) -> _Pair:
    """The middle over rounds, without those that were disturbed."""
    rounds = list(zip(one.blocks, other.blocks))
    changes = [math.log(a.seconds / b.seconds) for a, b in rounds]
    quiet = [change for change, (a, b) in zip(changes, rounds) if not (a.disturbed or b.disturbed)]
    crowded = 2 * len(quiet) < len(changes)
    kept = list(_near(changes if crowded else quiet))
    return _Pair(statistics.median(kept), len(changes), len(changes) - len(kept), crowded)


def is_steady(group: Sequence[Reading], within: float) -> bool:
    """Whether more rounds would hardly move the test pairs: the standard errors of their ratios are below `within`."""
    return all(_error(group[one], group[other]) <= within for (one, other), is_test in _PAIRS.items() if is_test)


def _error(one: Reading, other: Reading) -> float:
    """Of the median over rounds, as if noise were normal."""
    changes = [math.log(a.seconds / b.seconds) for a, b in zip(one.blocks, other.blocks)]
    if len(changes) < _FEWEST_ROUNDS:
        return math.inf
    return math.sqrt(math.pi / 2 / len(changes)) * _deviation(changes)


def _deviation(changes: Sequence[float]) -> float:
    middle = statistics.median(changes)
    return _TO_DEVIATION * statistics.median(abs(change - middle) for change in changes)


def _near(changes: Sequence[float]) -> Iterator[float]:
    """Those not far off the others."""
    middle, deviation = statistics.median(changes), _deviation(changes)
    for change in changes:
        if len(changes) < _FEWEST_ROUNDS or abs(change - middle) <= _FAR_OFF * deviation:
            yield change


def _beside_a_slow_machine(readings: Sequence[Reading]) -> set[int]:
    """Readings (by identity) around which the machine itself was slow, whichever side ran."""
    spins = [reading.spin for reading in readings if reading.spin > 0]
    if len(spins) < _ENOUGH_TO_KNOW:
        return set()
    usual = statistics.median(spins)
    return {id(reading) for reading in readings if reading.spin > _SLOWER * usual}


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
