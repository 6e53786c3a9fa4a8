"""Effects are functions of the program: whoever is asked first, each function of the fixtures has the same."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest
from asking import linked, programs_in
from hypothesis import given, settings
from hypothesis import strategies as st

from perflint.analysis.effects.compose import Composer
from perflint.analysis.effects.summary import Effect, Effects
from perflint.analysis.names.refs import Scope
from perflint.analysis.program import Program
from perflint.ir.summary import MODULE
from perflint.ir.survey import survey

FIXTURES = Path(__file__).parents[2] / "fixtures"
GROUPS = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir() and not path.name.startswith("__"))


@pytest.mark.parametrize("group", GROUPS)
def test_effects_of_fixtures_in_every_order(group: str) -> None:
    for texts in programs_in(FIXTURES / group):
        program, _ = linked(texts)
        scopes = [scope for scope, _ in program.resolver.nesting.functions]
        shuffled = list(scopes)
        random.Random(1).shuffle(shuffled)
        answers = [_asked(program, order) for order in (scopes, scopes[::-1], shuffled)]
        assert answers[0] == answers[1] == answers[2]


def _asked(program: Program, scopes: list[Scope]) -> dict[Scope, Effects]:
    composer = Composer(program)
    return {scope: composer.of(scope) for scope in scopes}


#: Functions by number: whether each collects garbage, and which others it calls.
CALLS = st.integers(1, 9).flatmap(
    lambda size: st.lists(
        st.tuples(st.booleans(), st.lists(st.integers(0, size - 1), max_size=3)), min_size=size, max_size=size
    )
)


@settings(max_examples=60, deadline=None)
@given(CALLS, st.randoms(use_true_random=False))
def test_effects_are_those_of_all_that_is_reached(calls: list[tuple[bool, list[int]]], order: random.Random) -> None:
    text = "import gc\n"
    for number, (collects, callees) in enumerate(calls):
        body = [f"f{callee}()" for callee in callees] + ["gc.collect()"] * collects
        text += f"def f{number}():\n" + "".join(f"    {line}\n" for line in body or ["pass"])
    program = Program({"a.py": survey(ast.parse(text), text.splitlines())})
    distance = _distances(calls)
    scopes = [Scope("a.py", f"f{number}") for number in range(len(calls))]
    order.shuffle(scopes)
    for scope in scopes:
        number = int(scope.function[1:])
        witness = program.effects(scope).witness(Effect.COLLECTS)
        assert (None if witness is None else witness.depth) == distance.get(number)
        # All calls are sure, so what may be reached is.
        assert program.effects(scope).surely(Effect.COLLECTS) == (number in distance)
    assert program.effects(Scope("a.py", MODULE)) == Effects()


def _distances(calls: list[tuple[bool, list[int]]]) -> dict[int, int]:
    """By function, how many calls it is to the nearest that collects."""
    found = {number: 0 for number, (collects, _) in enumerate(calls) if collects}
    for _ in calls:
        for number, (_, callees) in enumerate(calls):
            ways = [found[callee] + 1 for callee in callees if callee in found]
            if ways:
                found[number] = min([found.get(number, len(calls)), *ways])
    return found
