"""From times of two sides to a verdict. Pure: no clock, no processes.

Four processes make a group, in the order A B B A: two test pairs (one of each side) and two null pairs (one side
twice). They take their blocks in turn, so the blocks of one round are neighbours in time. What is compared is the mean
of all calls of a process, slow ones included, since that is what the user pays. A pair counts once, however many
rounds it has: what differs from process to process, such as where memory was allocated, does not average out within
one. Null pairs suffer the same noise at the same time and show how far the same code differs from itself.

Preemption is not removed by leaving out slow calls, which may be the workload's own. Where the system reports how long
a process waited for a processor, that time is subtracted; elsewhere rounds with an involuntary context switch are left
out, unless the calls are bimodal: the longer kind would be left out more often.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from perflint.verify.modes import Modes, modes_of
from perflint.verify.results import BAND, Verdict

#: Share of pairs left out at each end where calls are of one kind: a neighbour on the machine spoils single processes.
TRIM = 0.2
CONFIDENCE = 0.95
_RESAMPLES = 1000
#: A process is disturbed when the machine was this much slower around it than around the middle one of the run.
_SLOWER = 1.3
#: So many processes show what is usual on the machine.
_ENOUGH_TO_KNOW = 8
#: Fewer rounds than this have no standard error worth the name.
_FEWEST_ROUNDS = 5
#: Fewer pairs than this allow no verdict: intervals over them are too narrow to be true.
FEWEST_PAIRS = 6
#: Times of calls that are looked at for modes, per side.
_MOST_TIMES = 4000
#: A budget this many times as large is not worth suggesting.
_MOST_BUDGETS = 30
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
    """Seconds that `calls` calls took together.

    `waited` are the seconds of them in which the process could have run and had no processor; None where the system
    does not report it, or where the workload's own processes or its device make it no pure loss. `disturbed`: the
    system took the processor away meanwhile. `times` are the seconds of single calls, where those were timed.
    """

    seconds: float
    disturbed: bool = False
    calls: int = 1
    waited: float | None = None
    times: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """What one process gave: a block for each round, and the seconds of a fixed piece of work beside it."""

    blocks: tuple[Block, ...]
    spin: float = 0.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """`ratio` is before over after, `noise` the reach of the same side against itself.

    `rounds` are the comparisons of one block with another behind `pairs`; `disturbed` of them were noticed as such and
    left out, unless most were: then there is nothing to hold them against, and `crowded` says so. `before` and `after`
    are seconds of the mean call. `waited` is the share of time in which processes had no processor, where that was
    subtracted. `modes` are told where the calls of a side are bimodal.
    """

    verdict: Verdict
    ratio: Interval
    noise: float
    pairs: int
    rounds: int
    disturbed: int
    crowded: bool = False
    before: float = 0.0
    after: float = 0.0
    waited: float = 0.0
    modes: tuple[Modes | None, Modes | None] = (None, None)

    def is_settled(self, precision: float) -> bool:
        """Whether more trials would say nothing new: what is there is known to within `precision`, noise included."""
        if self.verdict is Verdict.UNDECIDED:
            return False
        if self.verdict is Verdict.NO_DIFFERENCE:
            return self.ratio.reach * self.noise <= 1 + 2 * precision
        return math.sqrt(self.ratio.width) <= 1 + 2 * precision or self.is_plain

    @property
    def is_plain(self) -> bool:
        """Whether the effect is so large that its exact size does not matter."""
        distance = max(self.ratio.low, 1 / self.ratio.high)
        return distance >= 1.5 * self.noise and self.ratio.width <= distance

    def why_undecided(self, spent: float) -> str:
        """What keeps it from a verdict, and what would decide. `spent` are the seconds it took."""
        seen = f"the interval {self.ratio.low:.3g} to {self.ratio.high:.3g} after {self.pairs} pairs of processes"
        if self.ratio.low > 1 or self.ratio.high < 1:
            return f"{seen} is no further from 1 than the same code from itself ({self.noise:.3g}x); {_QUIETER}"
        # An interval narrows with the root of the number of pairs; twice as much, since it may lie to one side of 1.
        factor = 2 * (math.log(self.ratio.width) / 2 / math.log1p(BAND)) ** 2
        more = f"--budget {math.ceil(spent * max(factor, 2)):d}s, or {_QUIETER}"
        decides = more if factor <= _MOST_BUDGETS else f"{_QUIETER}; more blocks alone will not do"
        return f"{seen} holds 1 and more than {BAND:.0%} to a side; {decides}"


_QUIETER = "a workload with longer calls or a less busy machine would decide"


@dataclass(frozen=True, slots=True)
class _Side:
    """The calls of one process that count."""

    seconds: float
    calls: int

    @property
    def mean(self) -> float:
        return self.seconds / self.calls


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two processes against each other."""

    one: _Side
    other: _Side
    rounds: int
    disturbed: int
    crowded: bool

    @property
    def change(self) -> float:
        """Logarithm of the ratio of their mean calls."""
        return math.log(self.one.mean / self.other.mean)


def judge(groups: Iterable[Sequence[Reading]]) -> Judgement | None:
    """Judge groups in `ORDER`, the last maybe incomplete; None while there are too few undisturbed pairs."""
    found = list(groups)
    readings = [reading for group in found for reading in group]
    slow = _beside_a_slow_machine(readings)
    modes = (_modes(found, is_after=False), _modes(found, is_after=True))
    is_uneven = any(modes)
    weigh = _Weigh(subtracts=_subtracts(readings), drops=not is_uneven)
    tests: list[_Pair] = []
    nulls: list[_Pair] = []
    for group in found:
        for (one, other), is_test in _PAIRS.items():
            if max(one, other) < len(group) and not {id(group[one]), id(group[other])} & slow:
                (tests if is_test else nulls).append(weigh.pair(group[one], group[other]))
    if len(tests) < FEWEST_PAIRS or len(nulls) < FEWEST_PAIRS - 1:
        return None
    over = pooled if is_uneven else interval
    ratio = over([(pair.one.seconds, pair.one.calls, pair.other.seconds, pair.other.calls) for pair in tests])
    noise = over([(pair.one.seconds, pair.one.calls, pair.other.seconds, pair.other.calls) for pair in nulls]).reach
    return Judgement(
        _verdict(ratio, noise),
        ratio,
        noise,
        len(tests),
        sum(pair.rounds for pair in tests),
        sum(pair.disturbed for pair in tests) + len(slow),
        crowded=2 * sum(pair.crowded for pair in tests) > len(tests),
        before=_mean_call(pair.one for pair in tests),
        after=_mean_call(pair.other for pair in tests),
        waited=_waited(readings) if weigh.subtracts else 0.0,
        modes=modes,
    )


#: Places in `ORDER`, and whether they hold the two sides or one of them twice. A test pair is before and after.
_PAIRS = {(0, 1): True, (1, 2): False, (3, 2): True, (0, 3): False}


def _verdict(ratio: Interval, noise: float) -> Verdict:
    if ratio.low > noise:
        return Verdict.FASTER
    if ratio.high < 1 / noise:
        return Verdict.SLOWER
    return Verdict.NO_DIFFERENCE if ratio.reach <= 1 + BAND else Verdict.UNDECIDED


@dataclass(frozen=True, slots=True)
class _Weigh:
    """What is done about preemption, alike for both sides of all pairs: waiting is subtracted, or rounds dropped."""

    subtracts: bool
    drops: bool

    def pair(self, one: Reading, other: Reading) -> _Pair:
        rounds = list(zip(one.blocks, other.blocks))
        quiet = [both for both in rounds if not (both[0].disturbed or both[1].disturbed)]
        keeps_all = self.subtracts or not self.drops
        crowded = not self.subtracts and 2 * len(quiet) < len(rounds)
        kept = rounds if keeps_all or crowded else quiet
        return _Pair(
            self.side([a for a, _ in kept]),
            self.side([b for _, b in kept]),
            len(rounds),
            len(rounds) - len(kept),
            crowded,
        )

    def side(self, blocks: Sequence[Block]) -> _Side:
        return _Side(sum(map(self.cost, blocks)), sum(block.calls for block in blocks))

    def cost(self, block: Block) -> float:
        """Seconds of all its calls."""
        return block.seconds - (block.waited or 0.0) if self.subtracts else block.seconds


def _subtracts(readings: Iterable[Reading]) -> bool:
    """Whether waiting is known for every block of both sides: otherwise one side would get a discount."""
    return all(block.waited is not None for reading in readings for block in reading.blocks)


def _waited(readings: Iterable[Reading]) -> float:
    blocks = [block for reading in readings for block in reading.blocks]
    return sum(block.waited or 0.0 for block in blocks) / sum(block.seconds for block in blocks)


def _mean_call(sides: Iterable[_Side]) -> float:
    those = list(sides)
    return sum(side.seconds for side in those) / sum(side.calls for side in those)


def _modes(groups: Sequence[Sequence[Reading]], *, is_after: bool) -> Modes | None:
    times = (
        time
        for group in groups
        for place, reading in enumerate(group)
        if ORDER[place] is is_after
        for block in reading.blocks
        for time in block.times
    )
    return modes_of(list(itertools.islice(times, _MOST_TIMES)))


def is_steady(group: Sequence[Reading], within: float) -> bool:
    """Whether more rounds would hardly move the test pairs: the standard errors of their ratios are below `within`."""
    weigh = _Weigh(subtracts=_subtracts(group), drops=False)
    return all(_error(group[one], group[other], weigh) <= within for (one, other), is_test in _PAIRS.items() if is_test)


def _error(one: Reading, other: Reading, weigh: _Weigh) -> float:
    """Of the mean over rounds."""
    changes = [math.log(weigh.side([a]).mean / weigh.side([b]).mean) for a, b in zip(one.blocks, other.blocks)]
    if len(changes) < _FEWEST_ROUNDS:
        return math.inf
    return statistics.stdev(changes) / math.sqrt(len(changes))


def _beside_a_slow_machine(readings: Sequence[Reading]) -> set[int]:
    """Readings (by identity) around which the machine itself was slow, whichever side ran."""
    spins = [reading.spin for reading in readings if reading.spin > 0]
    if len(spins) < _ENOUGH_TO_KNOW:
        return set()
    usual = statistics.median(spins)
    return {id(reading) for reading in readings if reading.spin > _SLOWER * usual}


#: Seconds and calls of one process, then of the other.
_Totals = tuple[float, int, float, int]


def interval(totals: Sequence[_Totals]) -> Interval:
    """Trimmed mean over pairs of the logarithms of their ratios with its bootstrap interval, as ratios."""
    import numpy as np
    from scipy import stats

    one, calls, other, others = np.asarray(totals, dtype=float).T
    changes = np.log(one / calls) - np.log(other / others)
    return _interval(len(changes), lambda chosen: np.exp(stats.trim_mean(changes[chosen], TRIM, axis=-1)))


def pooled(totals: Sequence[_Totals]) -> Interval:
    """Ratio of the mean calls of all pairs together with its bootstrap interval over pairs.

    For calls bimodal: the logarithm of a process's mean would underrate what is slow seldom, and trimming loses it.
    """
    import numpy as np

    data = np.asarray(totals, dtype=float)

    def ratio(chosen: Any) -> Any:
        one, calls, other, others = np.moveaxis(data[chosen].sum(axis=-2), -1, 0)
        return (one / calls) / (other / others)

    return _interval(len(data), ratio)


def _interval(count: int, estimate: Any) -> Interval:
    """By the percentile bootstrap. `estimate` takes places, the last axis being one sample."""
    import numpy as np

    # A fixed seed: the same times give the same verdict.
    chosen = np.random.default_rng(0).integers(count, size=(_RESAMPLES, count))
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(estimate(chosen), [tail, 100 - tail])
    middle = float(estimate(np.arange(count)))
    return Interval(middle, min(float(low), middle), max(float(high), middle))
