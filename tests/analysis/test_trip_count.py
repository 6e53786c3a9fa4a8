"""How many turns a loop has at most: literals, constants, defaults of options, slices and early ends."""

from __future__ import annotations

import ast

import pytest
from of_text import facts_of, node_at

from perflint.analysis.frequency.trip_count import most_turns

_HEAD = """
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--rollout-length", type=int, default=5)
args = parser.parse_args()
ROUNDS = 4
"""


@pytest.mark.parametrize(
    ("header", "turns"),
    [
        ("for i in range(10)", 10),
        ("for i in range(2, 10)", 8),
        ("for i in range(ROUNDS)", 4),
        ("for i in range(args.rollout_length)", 5),
        ("for i, x in enumerate((a, b, c))", 3),
        ("for x in rows[:8]", 8),
        ("for x in rows", None),
        ("for i in range(len(rows))", None),
        ("for x in (a, *rows)", None),
        ("while rows", None),
    ],
)
def test_turns(header: str, turns: int | None) -> None:
    facts = facts_of(f"{_HEAD}\ndef go(rows, a, b, c):\n    {header}:\n        work(rows)\n")
    loop = node_at(facts, f"{header}: work(rows)", ast.stmt)
    assert most_turns(loop, facts) == turns


def test_a_loop_that_breaks_off_has_no_more_turns_than_that() -> None:
    facts = facts_of("def go(rows):\n    for step, x in enumerate(rows):\n        if step >= 3:\n            break\n")
    loop = next(part for part in ast.walk(facts.tree.module) if isinstance(part, ast.For))
    assert most_turns(loop, facts) == 3


def test_of_several_things_that_a_name_may_be_the_longest_counts() -> None:
    facts = facts_of("def go(flag):\n    rows = (1, 2) if flag else (1, 2, 3)\n    for x in rows:\n        work(x)\n")
    loop = next(part for part in ast.walk(facts.tree.module) if isinstance(part, ast.For))
    assert most_turns(loop, facts) == 3
