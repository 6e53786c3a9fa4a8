"""Cycles of values that grow while they are solved take linear work: counted in evaluations, never by a clock."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

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


class Conditional:
    """Each member joins what it reads; some it reads only once another one has a value, so that a component turns out
    to depend on more while it is solved."""

    def __init__(self, draw: random.Random, size: int) -> None:
        places = (Place.HOST, Place.MODULE, Place.TARGET)
        self.own = [tensor(draw.choice(places)) if draw.random() < 0.2 else NEVER for _ in range(size)]
        self.plain = [draw.sample(range(size), draw.randrange(3)) for _ in range(size)]
        self.later = [[(draw.randrange(size), draw.randrange(size))] * draw.randrange(3) for _ in range(size)]
        self.queries = Queries()
        self.memo: dict[int, Kind] = {}

    def value(self, number: int, read: Callable[[int], Kind]) -> Kind:
        parts = [self.own[number], *(read(other) for other in self.plain[number])]
        parts += [read(other) for key, other in self.later[number] if read(key).tag is not Tag.NEVER]
        return join(tuple(parts))

    def ask(self, number: int) -> Kind:
        known = self.memo.get(number)
        return known or self.queries.ask(number, self.memo, number, self.value, number, self.ask)

    def least(self) -> list[Kind]:
        """The least values that agree, by evaluating all until nothing changes."""
        found = [NEVER] * len(self.own)
        while True:
            then = [self.value(number, found.__getitem__) for number in range(len(found))]
            if then == found:
                return found
            found = then


@pytest.mark.parametrize("size", [4, 7, 12, 20])
def test_what_is_read_on_a_condition_only_has_the_least_value(size: int) -> None:
    for seed in range(150):
        system = Conditional(random.Random(seed), size)
        order = random.Random(seed).sample(range(size), size)
        found = {number: system.ask(number) for number in order}
        assert [found[number] for number in range(size)] == system.least(), f"seed {seed}"


def test_what_is_kept_of_a_component_stays_kept_where_the_rest_has_to_wait() -> None:
    """What `q` reads changes while it is solved: first a query that is new, then one that was begun before all."""
    queries = Queries()
    memo: dict[str, Kind] = {}
    turns: Counter[str] = Counter()
    first = {"root": "x", "x": "p", "w": "x"}

    def ask(name: str) -> Kind:
        return memo.get(name) or queries.ask(name, memo, name, value, name)

    def value(name: str) -> Kind:
        turns[name] += 1
        if name == "p" and turns[name] == 1:
            ask("x")
        if name == "q":
            ask({1: "x", 2: "w"}.get(turns[name], "root"))
        if name in first:
            ask(first[name])
        if name == "x":
            ask("q")
        return _TENSOR

    assert ask("root") == _TENSOR
    assert memo == dict.fromkeys(("root", "x", "p", "q", "w"), _TENSOR)
