"""What is asked before changes no answer: of the fixtures' expressions, and of the query engine by itself."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from asking import differences, linked, programs_in
from hypothesis import given, settings
from hypothesis import strategies as st

from perflint.analysis.values.kind import NEVER, UNKNOWN, Kind, Tag
from perflint.analysis.values.queries import Queries

FIXTURES = Path(__file__).parents[2] / "fixtures"
GROUPS = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir() and not path.name.startswith("__"))

#: A chain of values: a query takes the highest of what it reads.
LEVELS = [NEVER, *(Kind(Tag.NUMBER, qualified=str(level)) for level in range(6)), UNKNOWN]


@pytest.mark.parametrize("group", GROUPS)
def test_expressions_of_fixtures_in_every_order(group: str) -> None:
    for texts in programs_in(FIXTURES / group):
        program, trees = linked(texts)
        found = [str(item) for _, items in differences(program, trees) for item in items]
        assert not found


class System:
    """Equations that a `Queries` answers: each value is the highest of a level of its own and those it reads."""

    def __init__(self, equations: dict[int, tuple[int, list[int]]]) -> None:
        self.equations = equations
        self.queries = Queries()
        self.memo: dict[int, Kind] = {}

    def ask(self, number: int) -> Kind:
        known = self.memo.get(number)
        return known if known is not None else self.queries.ask(number, self.memo, number, self.evaluate, number)

    def evaluate(self, number: int) -> Kind:
        level, reads = self.equations[number]
        return LEVELS[max([level, *(LEVELS.index(self.ask(other)) for other in reads)])]

    def least(self) -> dict[int, Kind]:
        """The least solution, by passing levels on until nothing changes."""
        found = {number: level for number, (level, _) in self.equations.items()}
        for _ in self.equations:
            for number, (_, reads) in self.equations.items():
                found[number] = max([found[number], *(found[other] for other in reads)])
        return {number: LEVELS[level] for number, level in found.items()}


EQUATIONS = st.integers(1, 12).flatmap(
    lambda size: st.fixed_dictionaries(
        {
            number: st.tuples(st.integers(0, len(LEVELS) - 1), st.lists(st.integers(0, size - 1), max_size=4))
            for number in range(size)
        }
    )
)


@settings(max_examples=300, deadline=None)
@given(EQUATIONS, st.randoms(use_true_random=False))
def test_cycles_are_solved_whoever_asks_first(
    equations: dict[int, tuple[int, list[int]]], source: random.Random
) -> None:
    asked = sorted(equations)
    source.shuffle(asked)
    system = System(equations)

    assert {number: system.ask(number) for number in asked} == system.least()
    assert system.memo == system.least()


@pytest.mark.parametrize("close", [False, True], ids=["chain", "ring"])
def test_what_is_too_deep_for_the_stack_is_answered_all_the_same(*, close: bool) -> None:
    size = 2_000
    equations = {number: (0, [number + 1]) for number in range(size)}
    equations[size] = (3, [0] if close else [])
    for first in (0, size // 2, size):
        system = System(equations)
        assert system.ask(first) == LEVELS[3]
        assert all(system.ask(number) == LEVELS[3] for number in equations)


def test_values_that_never_come_to_rest_are_unknown() -> None:
    queries, memo = Queries(), dict[str, Kind]()

    def other(name: str, wanted: Callable[[Kind], Kind]) -> Kind:
        return wanted(queries.ask(name, memo, name, other, name, wanted))

    def flipped(kind: Kind) -> Kind:
        return Kind(Tag.STRING) if kind.tag is Tag.TENSOR else Kind(Tag.TENSOR)

    def wrapped(kind: Kind) -> Kind:
        return Kind(Tag.SEQUENCE, element=kind, items=((0, kind),))

    assert other("flip", flipped).tag in (Tag.STRING, Tag.TENSOR)
    assert memo["flip"] is UNKNOWN
    assert other("grow", wrapped).tag is Tag.SEQUENCE
    assert len(str(tuple(memo["grow"]))) < 10_000
