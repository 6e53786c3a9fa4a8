"""Taking turns: groups of processes whose blocks alternate, until the answer is clear or the budget is spent."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol, TypeVar

from perflint.verify import counting
from perflint.verify.counting import Counts
from perflint.verify.judging import FEWEST_PAIRS, ORDER, Block, Judgement, Reading, is_steady, judge
from perflint.verify.processes import TrialError
from perflint.verify.reach import Changed, Seen, is_seen, why_not
from perflint.verify.results import Result, Verdict

#: Pairs before anybody asks whether the answer is clear: asking sooner and more often finds what is not there.
_FIRST_LOOK = 8
#: Rounds of a group: as many as take the time that starting it took, within these; fewer only where a round is long.
_FEWEST_ROUNDS, _MOST_ROUNDS = 12, 40
_LONG_ROUND = 1.0
#: A group needs no more rounds once its pairs are known to within this part of the precision.
_ERROR = 4
#: A share of waiting for a processor below this goes without saying.
_WORTH_SAYING = 0.05
#: Groups that a verdict needs, and those that the budget has to have room for.
_FEWEST_GROUPS, _GROUPS_IN_BUDGET = FEWEST_PAIRS // 2, 6


@dataclass(frozen=True, slots=True)
class Plan:
    """`budget` is the seconds for one comparison, `timeout` those for one answer, `block` those of one block.

    A comparison ends early once its ratio is known to within `precision`. `threads` are those of every pool of a
    process, None for what the libraries choose.
    """

    budget: float = 60.0
    timeout: float = 300.0
    precision: float = 0.025
    block: float = 0.01
    seed: int = 0
    threads: int | None = 1


@dataclass(frozen=True, slots=True)
class Facts:
    """What the first run of one side in one process gave. `equal` is about the result that was to be compared."""

    peak: int | None = None
    equal: bool | None = None
    difference: str = ""
    first: float | None = None
    spin: float = 0.0
    notes: tuple[str, ...] = ()
    #: Parts of the results that could not be read, and the number of calls whose results were.
    unread: tuple[str, ...] = ()
    compared: int = 0
    #: What the run showed of the lines that the fix changes; None where nobody looked.
    seen: Seen | None = None
    #: Of one step on a simulated device.
    counts: Counts | None = None


@dataclass(frozen=True, slots=True)
class Timed:
    """A block, with the time by the device's own clock where it has one."""

    block: Block
    device_seconds: float | None = None


R = TypeVar("R", bound="Running")


class Running(ABC):
    """One side in one process. A context manager: leaving it ends the process."""

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """Waits until they are known. Raises TrialError."""

    @abstractmethod
    def block(self) -> Timed:
        """Raises TrialError."""

    @abstractmethod
    def close(self, *, politely: bool) -> None:
        """End the process; politely where nothing went wrong."""

    def __enter__(self: R) -> R:  # noqa: PYI019 - Self is newer than Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(politely=kind is None)


class Side(Protocol):
    """One of the two things compared."""

    @property
    def is_single(self) -> bool:
        """Whether a process gives one block only, which `start` has run."""
        ...

    def start(self, plan: Plan, reference: Path | None, *, keeps: bool) -> Running:
        """`reference` is where the result is kept (`keeps`) or held against. Raises TrialError."""
        ...


@dataclass(frozen=True, slots=True)
class Row:
    """What a comparison is called in the results."""

    code: str
    workload: str
    size: str = ""

    def lacking(self, reason: str, *, failed: bool = False) -> Result:
        return Result(self.code, self.workload, self.size, Verdict.NOT_MEASURABLE, reason=reason, failed=failed)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while something was measured: `result` is what it came to so far."""

    def __init__(self, result: Result) -> None:
        super().__init__()
        self.result = result


@dataclass(slots=True)
class _Trial:
    """What is kept of one process."""

    is_after: bool
    facts: Facts
    timed: list[Timed] = field(default_factory=list)

    @property
    def reading(self) -> Reading:
        return Reading(tuple(one.block for one in self.timed), self.facts.spin)


@dataclass(slots=True)
class Run:
    """A comparison under way."""

    row: Row
    sides: tuple[Side, Side]
    plan: Plan
    reference: Path
    #: Called after each round with the share of the budget that is spent.
    progress: Callable[[float], None] = lambda _: None
    clock: Callable[[], float] = time.monotonic
    #: What the first side gave already when its result was kept in `reference`, which then stays there.
    known: Facts | None = None
    #: What the two sides must run to be worth timing.
    change: Changed | None = None
    groups: list[list[_Trial]] = field(default_factory=list)
    equal: bool | None = None
    firsts: tuple[float | None, float | None] = (None, None)
    notes: list[str] = field(default_factory=list)
    unread: tuple[str, ...] = ()
    compared: int = 0
    judgement: Judgement | None = None
    started: float = 0.0
    #: Whether the four processes of a group are alive at the same time.
    together: bool = field(init=False)

    def __post_init__(self) -> None:
        self.together = not self.sides[0].is_single

    def result(self) -> Result:
        """Measure. Never raises for what the workload does; raises Interrupted."""
        begin = self.started = self.clock()
        try:
            settled = self._compare_results()
            if settled is not None:
                return settled
            if any(first is not None for first in self.firsts):
                self.started = self.clock()  # compiling for the first time has a column of its own
            self._take_turns()
        except TrialError as error:
            return self.row.lacking(str(error), failed=True)
        except KeyboardInterrupt:
            if self._judge() is None:
                raise
            raise Interrupted(self._summed_up(self.clock() - begin)) from None
        finally:
            if self.known is None:
                self.reference.unlink(missing_ok=True)
        return self._summed_up(self.clock() - begin)

    def _compare_results(self) -> Result | None:
        """One run of each side that is not timed: they fill caches, their results are compared, and it is seen whether
        they run what is changed. A result where there is nothing to time."""
        before, after = self.sides
        first = self._facts(before, keeps=True) if self.known is None else self.known
        try:
            other = self._facts(after, keeps=False)
        except TrialError as error:
            if not error.is_crash:
                raise
            return self._different(f"after the fix it {error}" if str(error) else "it fails after the fix")
        self.notes += [*first.notes, *other.notes]
        self.firsts = (first.first, other.first)
        self.compared = other.compared
        self.unread = tuple(dict.fromkeys([*first.unread, *other.unread]))
        if other.equal is False:
            # Only a result that the same code gives twice can be compared.
            again = self._facts(before, keeps=False)
            if again.equal is not False:
                return self._different(other.difference)
            self.unread = (f"they differ from run to run: {again.difference}",)
        else:
            self.equal = other.equal
        return self._not_reached(first, other) or self._counted(first, other)

    def _not_reached(self, first: Facts, other: Facts) -> Result | None:
        if self.change is None or first.seen is None or other.seen is None:
            return None
        why = why_not(self.change, first.seen, other.seen)
        if why:
            self.equal = None  # that both sides give the same says nothing of what neither of them ran
            return self._untimed(Verdict.NOT_REACHED, why)
        unknown = first.seen.why_unknown or other.seen.why_unknown
        if unknown and not is_seen(self.change, first.seen, other.seen):
            self.notes.append(f"not known whether it runs what the fix changes: {unknown}")
        return None

    def _counted(self, first: Facts, other: Facts) -> Result | None:
        """The verdict by counts, on a device that has no clock."""
        if first.counts is None or other.counts is None:
            return None
        result = self._untimed(
            counting.verdict(first.counts, other.counts), counting.described(first.counts, other.counts)
        )
        return dataclasses.replace(
            result, counts_before=counting.to_json(first.counts), counts_after=counting.to_json(other.counts)
        )

    def _facts(self, side: Side, *, keeps: bool) -> Facts:
        with side.start(self.plan, self.reference, keeps=keeps) as running:
            return running.facts

    def _different(self, reason: str) -> Result:
        return dataclasses.replace(self._untimed(Verdict.DIFFERENT_RESULT, reason), equal=False)

    def _untimed(self, verdict: Verdict, reason: str) -> Result:
        row = self.row
        return Result(
            row.code,
            row.workload,
            row.size,
            verdict,
            equal=self.equal,
            not_compared=self.unread,
            compared=self.compared,
            reason="; ".join([reason, *self.notes]),
        )

    def _take_turns(self) -> None:
        last: Verdict | None = None
        while self._spent() < 1.0:
            try:
                self._group()
            except TrialError as error:
                # Each of them ran alone before.
                if not self.together or "memory" not in str(error):
                    raise
                self.together = False
                self.groups.clear()
                self.notes.append("its processes ran one after the other: memory does not suffice for all at once")
                continue
            judgement = self._judge()
            if judgement is None or judgement.pairs < _FIRST_LOOK:
                continue
            # A verdict that ends the run early must have been the verdict of the look before, too.
            if judgement.is_settled(self.plan.precision) and judgement.verdict is last:
                return
            last = judgement.verdict

    def _spent(self) -> float:
        share = (self.clock() - self.started) / self.plan.budget
        self.progress(min(share, 1.0))
        return share

    def _group(self) -> None:
        """Four processes, in the order before, after, after, before; what they gave goes to `groups`."""
        if not self.together:
            self._one_by_one()
            return
        with contextlib.ExitStack() as alive:
            begin = self.clock()
            # All set up at the same time; only then is anything timed.
            processes = [
                alive.enter_context(self.sides[is_after].start(self.plan, None, keeps=False)) for is_after in ORDER
            ]
            group = [_Trial(is_after, running.facts) for is_after, running in zip(ORDER, processes)]
            if self._spent() >= 1.0 and len(self.groups) >= _FEWEST_GROUPS:
                return
            self.groups.append(group)
            took = self.clock() - begin
            begin = self.clock()
            for number in range(_MOST_ROUNDS):
                for trial, running in zip(group, processes):
                    trial.timed.append(running.block())
                passed = self.clock() - begin
                is_enough = number + 1 >= _FEWEST_ROUNDS or passed >= (number + 1) * _LONG_ROUND
                is_its_share = took + passed >= self.plan.budget / _GROUPS_IN_BUDGET
                if self._spent() >= 1.0 or (is_enough and passed >= took) or is_its_share or self._is_steady(group):
                    return

    def _is_steady(self, group: Sequence[_Trial]) -> bool:
        return is_steady([trial.reading for trial in group], self.plan.precision / _ERROR)

    def _one_by_one(self) -> None:
        group: list[_Trial] = []
        self.groups.append(group)
        rounds = 1 if self.sides[0].is_single else _MOST_ROUNDS // 4
        for is_after in ORDER:
            with self.sides[is_after].start(self.plan, None, keeps=False) as running:
                timed = [running.block() for _ in range(rounds)]
                group.append(_Trial(is_after, running.facts, timed))
            if self._spent() >= 1.0:
                return

    def _judge(self) -> Judgement | None:
        self.judgement = judge([trial.reading for trial in group if trial.timed] for group in self.groups)
        return self.judgement

    def _summed_up(self, spent: float) -> Result:
        judgement = self._judge()
        trials = [trial for group in self.groups for trial in group]
        if judgement is None:
            needed = math.ceil(spent / max(len(trials), 1) * (len(ORDER) * _FEWEST_GROUPS + 2))
            reason = f"only {len(trials)} trials in {spent:.0f} s; try --budget {needed}s"
            return dataclasses.replace(self._untimed(Verdict.NOT_MEASURABLE, reason), failed=True)
        before, after = ([trial for trial in trials if trial.is_after is side] for side in (False, True))
        return Result(
            code=self.row.code,
            workload=self.row.workload,
            size=self.row.size,
            verdict=judgement.verdict,
            before_s=judgement.before,
            after_s=judgement.after,
            ratio=judgement.ratio.middle,
            ratio_low=judgement.ratio.low,
            ratio_high=judgement.ratio.high,
            peak_before=_peak(before),
            peak_after=_peak(after),
            equal=self.equal,
            not_compared=self.unread,
            compared=self.compared,
            device_before_s=_middle(timed.device_seconds for trial in before for timed in trial.timed),
            device_after_s=_middle(timed.device_seconds for trial in after for timed in trial.timed),
            noise=judgement.noise,
            first_before_s=self.firsts[0],
            first_after_s=self.firsts[1],
            pairs=judgement.pairs,
            rounds=judgement.rounds,
            disturbed=judgement.disturbed,
            calls=sum(timed.block.calls for trial in trials for timed in trial.timed),
            bimodal=tuple(name for name, modes in zip(("before", "after"), judgement.modes) if modes is not None),
            reason="; ".join([*_remarks(judgement, spent), *self.notes]),
        )


def _remarks(judgement: Judgement, spent: float) -> Iterator[str]:
    """What stands in no figure."""
    if judgement.verdict is Verdict.UNDECIDED:
        yield judgement.why_undecided(spent)
    for name, modes in zip(("before", "after"), judgement.modes):
        if modes is not None:
            yield f"bimodal {name}: {modes}"
    if judgement.waited >= _WORTH_SAYING:
        yield f"other processes had the processor for {judgement.waited:.0%} of the time, which does not count"
    if judgement.crowded:
        yield "other processes had the processor for a while in most blocks"


def _middle(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _peak(trials: Sequence[_Trial]) -> int | None:
    known = [trial.facts.peak for trial in trials if trial.facts.peak is not None]
    return int(statistics.median_low(known)) if known else None
