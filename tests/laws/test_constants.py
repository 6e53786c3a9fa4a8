"""The laws of constants: their lattice, the evaluator of tests against Python, and the order of asking."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

import pytest
from asking import linked, programs_in
from hypothesis import given, settings
from hypothesis import strategies as st

from perflint.analysis.feasibility.evaluate import evaluate
from perflint.analysis.feasibility.lattice import BOTTOM, SOMETHING, TOP, Literal, Possible, of
from perflint.analysis.feasibility.values import Values
from perflint.analysis.feasibility.worlds import World
from perflint.ir.computed import expression
from perflint.ir.summary import Value

FIXTURES = Path(__file__).parents[2] / "fixtures"
LITERALS = [None, True, False, 0, 1, 2, -3, "", "a", "train"]
COUNTED = st.sets(st.sampled_from(range(len(LITERALS))), max_size=4).map(
    lambda places: of(*[LITERALS[place] for place in places])
)
TYPED = st.sets(st.sampled_from(["Tensor", "str", "nets.py:Net", "NoneType"]), min_size=1).map(
    lambda types: SOMETHING.typed(*types)
)
POSSIBLE = st.one_of(COUNTED, st.sampled_from([BOTTOM, TOP, SOMETHING, *map(of, range(9))]), TYPED)
NAMES = ("x", "y", "z")
LEAVES = st.one_of(st.sampled_from(NAMES), st.sampled_from([repr(item) for item in LITERALS]))


def larger(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(
        ["and", "or", "==", "!=", "is", "is not", "<", "<=", ">", ">=", "+", "-", "*", "//", "%"]
    )
    return st.one_of(
        parts.map(lambda part: f"(not {part})"),
        st.tuples(parts, operators, parts).map(lambda item: f"({' '.join(item)})"),
        st.tuples(parts, parts, parts).map(lambda item: f"({item[0]} if {item[1]} else {item[2]})"),
        st.tuples(parts, st.sampled_from(["in", "not in"]), parts, parts).map(
            lambda item: f"({item[0]} {item[1]} ({item[2]}, {item[3]}))"
        ),
    )


EXPRESSIONS = st.recursive(LEAVES, larger, max_leaves=8)


@settings(max_examples=500, deadline=None)
@given(POSSIBLE, POSSIBLE, POSSIBLE)
def test_joins_are_those_of_a_lattice(one: Possible, two: Possible, three: Possible) -> None:
    assert one | one == one
    assert one | two == two | one
    assert (one | two) | three == one | (two | three)
    assert BOTTOM | one == one
    assert TOP | one == TOP
    assert one.within(one | two)
    assert BOTTOM.within(one)
    assert one.within(TOP)
    assert one.within(two) == ((one | two) == two)


def parsed(text: str) -> Value:
    return expression(ast.parse(text, mode="eval").body)


@settings(max_examples=500, deadline=None)
@given(EXPRESSIONS, st.tuples(POSSIBLE, POSSIBLE, POSSIBLE), st.tuples(POSSIBLE, POSSIBLE, POSSIBLE))
def test_more_known_of_the_parts_is_no_less_known_of_the_whole(
    text: str, parts: tuple[Possible, ...], others: tuple[Possible, ...]
) -> None:
    value = parsed(text)
    less = {name: part | other for name, part, other in zip(NAMES, parts, others)}
    assert evaluate(value, dict(zip(NAMES, parts)).__getitem__).within(evaluate(value, less.__getitem__))


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@settings(max_examples=500, deadline=None)
@given(EXPRESSIONS, st.tuples(COUNTED, COUNTED, COUNTED))
def test_what_python_gives_is_among_what_may_be(text: str, parts: tuple[Possible, ...]) -> None:
    found = evaluate(parsed(text), dict(zip(NAMES, parts)).__getitem__)
    for chosen in itertools.product(*[part.literals or () for part in parts]):
        try:
            really = eval(text, {name: literal.value for name, literal in zip(NAMES, chosen)})
        except (TypeError, ZeroDivisionError):
            continue
        assert of(really).sorts <= found.sorts
        assert found.literals is None or Literal(type(really).__name__, really) in found.literals


@pytest.mark.parametrize("group", ["TPL201-sync-in-hot-loop", "TPL202-tensor-in-condition", "_engine/heat"])
def test_no_constant_depends_on_what_was_asked_before(group: str) -> None:
    for texts in programs_in(FIXTURES / group):
        program, _ = linked(texts)
        asked = [
            (test, scope, world)
            for scope, facts in program.resolver.nesting.functions
            for test in [
                *[branch.test for branch in facts.branches],
                *facts.binds,
                *[item.name for item in facts.params],
            ]
            for world in World
        ]
        answers = []
        for order in (asked, asked[::-1]):
            values = Values(program.resolver, program.graph, program.roots, None, program.configs)
            answers.append({item: values.of(*item) for item in order})
        assert answers[0] == answers[1]
