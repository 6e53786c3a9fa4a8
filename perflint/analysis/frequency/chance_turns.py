"""Loops of which a draw decides after each turn whether there is another one: `while r < 0.2: r = random()`."""

from __future__ import annotations

import ast

from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk

#: Draws from the numbers between 0 and 1, where they are given no bounds.
_UNIFORM = frozenset({"random", "rand", "uniform"})
#: With odds of no more than this a loop has less than two turns on average.
_EVEN = 0.5


def turns_once_as_a_rule(loop: ast.stmt) -> bool:
    """Whether more loops end after their first turn than go on, by the odds that are written there; where an option or
    something else gives the odds, nobody knows that they go on.
    """
    test = loop.test if isinstance(loop, ast.While) else None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.left, ast.Name):
        return False
    if not _is_drawn_in(loop, test.left.id):
        return False
    odds = test.comparators[0]
    if not isinstance(odds, ast.Constant) or type(odds.value) not in (int, float):
        return True
    if isinstance(test.ops[0], (ast.Lt, ast.LtE)):
        return float(odds.value) <= _EVEN  # type: ignore[arg-type]
    return isinstance(test.ops[0], (ast.Gt, ast.GtE)) and float(odds.value) >= 1 - _EVEN  # type: ignore[arg-type]


def _is_drawn_in(loop: ast.stmt, name: str) -> bool:
    assert isinstance(loop, ast.While)
    given = [
        part.value
        for statement in loop.body
        for part in walk(statement)
        if isinstance(part, ast.Assign) and any(isinstance(item, ast.Name) and item.id == name for item in part.targets)
    ]
    return bool(given) and all(
        isinstance(value, ast.Call) and callee_name(value) in _UNIFORM and not value.args and not value.keywords
        for value in given
    )
