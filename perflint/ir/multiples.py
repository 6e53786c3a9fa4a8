"""Tests whether the counter of a loop is a multiple of something, and loops whose counter begins at zero. Pure."""

from __future__ import annotations

import ast

from perflint.ir.summary import Value

_COUNTING = frozenset({"range", "trange"})
#: What goes through its first argument, and shows how far it has come.
_SHOWING = frozenset({"tqdm", "track"})


def multiple_of(test: ast.expr) -> str | None:
    """`i` of `i % every == 0` and of `not i % every`."""
    remainder: ast.expr | None = None
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        is_zero = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value == 0
        remainder = test.left if is_zero else None
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        remainder = test.operand
    if isinstance(remainder, ast.BinOp) and isinstance(remainder.op, ast.Mod) and isinstance(remainder.left, ast.Name):
        return remainder.left.id
    return None


def counts_from_zero(iterable: Value | None) -> bool:
    """Whether the first item of what a loop goes through is, or begins with, zero: `range(n)`, `enumerate(items)`."""
    if not (isinstance(iterable, tuple) and iterable[0] == "call" and isinstance(iterable[1], str) and iterable[2]):
        return False
    name, given = iterable[1].rpartition(".")[2], iterable[2]
    if name in _SHOWING:
        return counts_from_zero(given[0])
    if name == "enumerate":
        return len(given) == 1 and not iterable[3]
    return name in _COUNTING and (len(given) == 1 or (isinstance(given[0], tuple) and given[0][2:] == (0,)))
