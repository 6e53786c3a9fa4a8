"""Taking turns: trials of two sides, interleaved, until the answer is clear or the budget is spent."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from perflint.verify.judging import FEWEST_PAIRS, Judgement, Reading, judge, turns
from perflint.verify.launch import TrialError
from perflint.verify.results import Result, Verdict

#: Pairs before anybody asks whether the answer is clear: asking sooner and more often finds what is not there.
_FIRST_LOOK = 8
#: A verdict that stops the run early must have been the verdict of the look before, too.
_BLOCKS_BETWEEN_LOOKS = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """`budget` is the seconds for one comparison, `timeout` those for one trial, `sample` those measured in a trial.

    A comparison ends early once its ratio is known to within `precision`.
    """

    budget: float = 60.0
    timeout: float = 300.0
    precision: float = 0.025
    sample: float = 0.1
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Trial:
    """What one run of one side gave. `equal` is about the result it was asked to compare."""

    seconds: float
    peak: int | None = None
    spin: float = 0.0
    device_seconds: float | None = None
    equal: bool | None = None
    difference: str = ""
    first: float | None = None
    notes: tuple[str, ...] = ()


class Side(Protocol):
    """One of the two things compared."""

    def run(self, plan: Plan, reference: Path | None, *, keeps: bool) -> Trial:
        """One trial. `reference` is where the result is kept (`keeps`) or held against. Raises TrialError."""
        ...


@dataclass(frozen=True, slots=True)
class Row:
    """What a comparison is called in the results."""

    code: str
    workload: str
    size: str = ""

    def lacking(self, reason: str, *, failed: bool = False) -> Result:
        return Result(self.code, self.workload, self.size, Verdict.NOT_MEASURABLE, reason=reason, failed=failed)


@dataclass(slots=True)
class Run:
    """A comparison under way."""

    row: Row
    sides: tuple[Side, Side]
    plan: Plan
    reference: Path
    #: Called after each trial with the share of the budget that is spent.
    progress: Callable[[float], None] = lambda _: None
    clock: Callable[[], float] = time.monotonic
    trials: tuple[list[Trial], list[Trial]] = field(default_factory=lambda: ([], []))
    equal: bool | None = None
    firsts: tuple[float | None, float | None] = (None, None)
    notes: list[str] = field(default_factory=list)
    judgement: Judgement | None = None

    def result(self) -> Result:
        """Measure. Never raises for what the workload does."""
        start = self.clock()
        try:
            different = self._warm_up()
            if different is not None:
                return different
            self._take_turns(start)
        except TrialError as error:
            return self.row.lacking(str(error), failed=True)
        finally:
            self.reference.unlink(missing_ok=True)
        return self._summed_up(self.clock() - start)

    def _warm_up(self) -> Result | None:
        """One trial of each side that is not counted: they fill caches, and their results are compared."""
        before, after = self.sides
        first = before.run(self.plan, self.reference, keeps=True)
        try:
            other = after.run(self.plan, self.reference, keeps=False)
        except TrialError as error:
            if not error.is_crash:
                raise
            return self._different(f"after the fix it {error}" if str(error) else "it fails after the fix")
        self.notes += [*first.notes, *other.notes]
        self.firsts = (first.first, other.first)
        if first.equal is None:
            return None
        if other.equal is False:
            # Only a result that the same code gives twice can be compared.
            again = before.run(self.plan, self.reference, keeps=False)
            if again.equal is not False:
                return self._different(other.difference)
            self.notes.append(f"results not compared: they differ from run to run ({again.difference})")
        else:
            self.equal = other.equal
        return None

    def _different(self, reason: str) -> Result:
        row = self.row
        return Result(row.code, row.workload, row.size, Verdict.DIFFERENT_RESULT, equal=False, reason=reason)

    def _take_turns(self, start: float) -> None:
        last: Verdict | None = None
        block = turns(_BLOCKS_BETWEEN_LOOKS)
        while True:
            for side in block:
                self.trials[side].append(self.sides[side].run(self.plan, None, keeps=False))
                spent = (self.clock() - start) / self.plan.budget
                self.progress(min(spent, 1.0))
                if spent >= 1.0:
                    return
            if len(self.trials[0]) < _FIRST_LOOK:
                continue
            judgement = self._judge()
            if judgement is not None and judgement.is_settled(self.plan.precision) and judgement.verdict is last:
                return
            last = judgement.verdict if judgement is not None else None

    def _judge(self) -> Judgement | None:
        before, after = ([Reading(trial.seconds, trial.spin) for trial in side] for side in self.trials)
        self.judgement = judge(before, after)
        return self.judgement

    def _summed_up(self, spent: float) -> Result:
        before, after = self.trials
        judgement = self._judge()
        if judgement is None:
            needed = math.ceil(spent / max(len(before) + len(after), 1) * (2 * FEWEST_PAIRS + 4))
            return self.row.lacking(
                f"only {len(before) + len(after)} trials in {spent:.0f} s; try --budget {needed}s",
                failed=True,
            )
        return Result(
            code=self.row.code,
            workload=self.row.workload,
            size=self.row.size,
            verdict=judgement.verdict,
            before_s=_middle([trial.seconds for trial in before]),
            after_s=_middle([trial.seconds for trial in after]),
            ratio=judgement.ratio.middle,
            ratio_low=judgement.ratio.low,
            ratio_high=judgement.ratio.high,
            peak_before=_peak(before),
            peak_after=_peak(after),
            equal=self.equal,
            device_before_s=_middle([trial.device_seconds for trial in before]),
            device_after_s=_middle([trial.device_seconds for trial in after]),
            noise=judgement.noise,
            first_before_s=self.firsts[0],
            first_after_s=self.firsts[1],
            pairs=judgement.pairs,
            disturbed=judgement.disturbed,
            reason="; ".join(self.notes),
        )


def _middle(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _peak(trials: Sequence[Trial]) -> int | None:
    known = [trial.peak for trial in trials if trial.peak is not None]
    return int(statistics.median_low(known)) if known else None
