"""Loops of which a draw decides after each turn whether there is another one: `while r < 0.2: r = random()`."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import callee_name, keyword
from perflint.ir.notation import last_name
from perflint.syntax.walk import walk

#: Draws from the numbers between 0 and 1, where they are given no bounds.
_UNIFORM = frozenset({"random", "rand", "uniform"})
#: With odds of no more than this a loop has less than two turns on average.
_EVEN = 0.5


def turns_once_as_a_rule(loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether more loops end after their first turn than go on, by the odds that are written down or default."""
    test = loop.test if isinstance(loop, ast.While) else None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.left, ast.Name):
        return False
    if not _is_drawn_in(loop, test.left.id):
        return False
    odds = _odds(test.comparators[0], ctx)
    if isinstance(test.ops[0], (ast.Lt, ast.LtE)):
        return bool(odds) and max(odds) <= _EVEN
    return isinstance(test.ops[0], (ast.Gt, ast.GtE)) and bool(odds) and min(odds) >= 1 - _EVEN


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


def _odds(value: ast.expr, ctx: FileFacts) -> list[float]:
    """What a number is: written there, or the default of an option that the file declares. Summaries keep no such
    numbers.
    """
    told: Iterable[object] = ()
    if isinstance(value, ast.Constant):
        told = [value.value]
    elif isinstance(value, (ast.Name, ast.Attribute)):
        told = ctx.once(_defaults, ctx.tree.module).get(last_name(value), ())
    return [float(item) for item in told if type(item) in (int, float)]  # type: ignore[arg-type]


def _defaults(module: ast.Module, _: FileFacts) -> dict[str, list[object]]:
    """By option of the command line, its defaults."""
    found: dict[str, list[object]] = {}
    for part in walk(module):
        if not isinstance(part, ast.Call) or callee_name(part) != "add_argument":
            continue
        default = keyword(part, "default")
        for item in part.args:
            if isinstance(item, ast.Constant) and isinstance(item.value, str) and isinstance(default, ast.Constant):
                found.setdefault(item.value.lstrip("-").replace("-", "_"), []).append(default.value)
    return found
