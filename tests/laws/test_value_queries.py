"""Cycles of values that grow while they are solved take linear work: counted in evaluations, never by a clock."""

from __future__ import annotations

from perflint.analysis.values.kind import NEVER, UNKNOWN, Kind, Place, Tag, join, tensor
from perflint.analysis.values.queries import Queries

_TENSOR = tensor(Place.HOST)


class Growing:
    """Each member reads the one before it, and once that is known the next one; the first also reads the last one."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.queries = Queries()
        self.memo: dict[int, Kind] = {}
        self.evaluations = 0

    def ask(self, number: int) -> Kind:
        known = self.memo.get(number)
        return known or self.queries.ask(number, self.memo, number, self._evaluate, number)

    def _evaluate(self, number: int) -> Kind:
        self.evaluations += 1
        if number == 0:
            return join((_TENSOR, self.ask(1)))
        before = self.ask(number - 1)
        if before.tag is Tag.NEVER or number == self.size:
            return before
        return join((before, self.ask(number + 1)))


def test_what_a_cycle_turns_out_to_read_is_solved_with_it_in_linear_work() -> None:
    counted = []
    for size in (200, 400):
        growing = Growing(size)
        assert growing.ask(0) == _TENSOR
        assert set(growing.memo.values()) == {_TENSOR}
        assert len(growing.memo) == size + 1
        counted.append(growing.evaluations)
    assert counted[1] <= 2.25 * counted[0]
    assert counted[1] <= 12 * 400


def test_whichever_member_is_asked_first_all_have_the_same_value() -> None:
    for first in (0, 1, 30, 60):
        growing = Growing(60)
        growing.ask(first)
        assert [growing.ask(number) for number in range(61)] == [_TENSOR] * 61


def test_a_cycle_on_which_nothing_bears_has_its_floor() -> None:
    queries = Queries()
    memo: dict[int, Kind] = {}

    def ask(number: int) -> Kind:
        return memo.get(number) or queries.ask(
            number, memo, number, lambda: join((ask(1 - number),)), floor=lambda: UNKNOWN
        )

    assert ask(0) is UNKNOWN
    assert NEVER not in memo.values()
