"""Comparisons of sides that are planted: what they give is decided here, and the clock too."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from perflint.verify.judging import Block
from perflint.verify.measuring import Facts, Interrupted, Plan, Row, Run, Running, Timed
from perflint.verify.processes import TrialError
from perflint.verify.results import Result, Verdict


class _Process(Running):
    def __init__(self, facts: Facts, side: "_Side") -> None:
        self._facts = facts
        self._side = side
        side.alive += 1

    @property
    def facts(self) -> Facts:
        return self._facts

    def block(self) -> Timed:
        side = self._side
        side.blocks += 1
        if side.blocks == side.breaks_at:
            raise side.breaks_with
        if side.alive > side.room:
            raise TrialError("ran out of memory", is_crash=True)
        return Timed(Block(side.seconds * (1 + 0.001 * (side.blocks % 3))))

    def close(self, *, politely: bool) -> None:
        self._side.alive -= 1


@dataclass
class _Side:
    """`equal` is what a process says of its result when it is held against the kept one; `room` is for so many
    processes of this side."""

    seconds: float
    equal: bool | None = True
    difference: str = ""
    errors: Sequence[TrialError | None] = ()
    first: float | None = None
    is_single: bool = False
    room: int = 2
    breaks_at: int = 0
    breaks_with: BaseException = field(default_factory=KeyboardInterrupt)
    asked: int = 0
    blocks: int = 0
    alive: int = 0
    _number: Iterator[int] = field(default_factory=count)

    def start(self, plan: Plan, reference: Path | None, *, keeps: bool) -> _Process:
        self.asked += 1
        number = next(self._number)
        if number < len(self.errors) and (error := self.errors[number]) is not None:
            raise error
        compared = reference is not None
        facts = Facts(
            equal=(True if keeps else self.equal) if compared else None,
            difference=self.difference if compared and not keeps else "",
            first=self.first,
        )
        return _Process(facts, self)


def _compared(before: _Side, after: _Side, tmp_path: Path, budget: float = 60.0) -> Result:
    ticks = count()
    run = Run(
        Row("TPL000", "planted"), (before, after), Plan(budget), tmp_path / "kept", clock=lambda: float(next(ticks))
    )
    return run.result()


def test_a_faster_side_is_faster(tmp_path: Path) -> None:
    result = _compared(_Side(2.0), _Side(1.0), tmp_path)
    assert result.verdict is Verdict.FASTER
    assert result.ratio == pytest.approx(2.0, rel=0.01)
    assert result.equal is True


def test_a_clear_answer_ends_the_comparison_and_an_unclear_one_uses_the_budget(tmp_path: Path) -> None:
    clear = _Side(2.0)
    _compared(clear, _Side(1.0), tmp_path, budget=10_000)
    assert clear.asked < 30


def test_no_process_stays_and_a_group_is_alive_at_once(tmp_path: Path) -> None:
    sides = _Side(2.0), _Side(1.0, room=1)
    result = _compared(*sides, tmp_path)
    assert result.verdict is Verdict.FASTER
    assert "memory does not suffice for all at once" in result.reason
    assert [side.alive for side in sides] == [0, 0]


def test_a_command_gives_one_figure_a_process(tmp_path: Path) -> None:
    sides = _Side(2.0, is_single=True), _Side(1.0, is_single=True)
    result = _compared(*sides, tmp_path)
    assert result.verdict is Verdict.FASTER
    assert [side.blocks + 1 for side in sides] == [side.asked for side in sides]


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("block", [16, 17, 18, 19, 20])
def test_an_interruption_tells_what_was_measured_so_far(side: int, block: int, tmp_path: Path) -> None:
    sides = _Side(2.0), _Side(1.0)
    sides[side].breaks_at = block
    with pytest.raises(Interrupted) as caught:
        _compared(*sides, tmp_path, budget=10_000)
    assert caught.value.result.ratio == pytest.approx(2.0, rel=0.01)
    assert [side.alive for side in sides] == [0, 0]


def test_an_interruption_before_there_is_anything_tells_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt) as caught:
        _compared(_Side(2.0), _Side(1.0, breaks_at=1), tmp_path)
    assert not isinstance(caught.value, Interrupted)


def test_another_result_is_different_whatever_the_speed(tmp_path: Path) -> None:
    result = _compared(_Side(2.0), _Side(0.1, equal=False, difference="result is 1 instead of 2"), tmp_path)
    assert result.verdict is Verdict.DIFFERENT_RESULT
    assert result.reason == "result is 1 instead of 2"
    assert result.ratio is None
    assert result.equal is False


def test_results_that_differ_from_run_to_run_are_not_compared_and_that_is_said(tmp_path: Path) -> None:
    before, after = (_Side(1.0, equal=False, difference="result differs by up to 0.3") for _ in range(2))
    result = _compared(before, after, tmp_path)
    assert result.verdict is Verdict.NO_DIFFERENCE
    assert result.equal is None
    assert result.not_compared == ("they differ from run to run: result differs by up to 0.3",)


def test_a_fix_that_breaks_the_workload_changes_its_result(tmp_path: Path) -> None:
    broken = _Side(1.0, errors=[TrialError("crashed: NameError: no copy", is_crash=True)])
    result = _compared(_Side(1.0), broken, tmp_path)
    assert result.verdict is Verdict.DIFFERENT_RESULT
    assert "NameError" in result.reason


def test_a_workload_that_crashes_by_itself_is_one_line_and_no_verdict(tmp_path: Path) -> None:
    broken = _Side(1.0, errors=[TrialError("ran out of memory", is_crash=True)])
    result = _compared(broken, _Side(1.0), tmp_path)
    assert result.verdict is Verdict.NOT_MEASURABLE
    assert result.reason == "ran out of memory"
    assert result.failed
    assert result.ratio is None


def test_a_budget_for_a_few_trials_says_what_would_be_enough(tmp_path: Path) -> None:
    result = _compared(_Side(1.0), _Side(1.0), tmp_path, budget=3)
    assert result.verdict is Verdict.NOT_MEASURABLE
    assert "try --budget" in result.reason


@pytest.mark.parametrize(
    ("before", "after", "calls"),
    [
        ((2.0, 0.0), (1.0, 100.0), 100),
        ((1.0, 100.0), (2.0, 0.0), 100),
        ((1.0, 0.0), (2.0, 100.0), float("inf")),
        ((1.0, 0.0), (1.0, 100.0), float("inf")),
    ],
)
def test_compiling_pays_after_as_many_calls_as_win_back_its_time(
    before: tuple[float, float], after: tuple[float, float], calls: float, tmp_path: Path
) -> None:
    sides = [_Side(seconds, first=first) for seconds, first in (before, after)]
    result = _compared(sides[0], sides[1], tmp_path)
    assert result.pays_after == pytest.approx(calls, rel=0.02)
