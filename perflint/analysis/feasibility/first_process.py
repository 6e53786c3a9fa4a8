"""Tests of which process runs: a training on one device has the first one alone, and the others keep its pace."""

from __future__ import annotations

import ast

from perflint.analysis.naming.phases import FIRST_PROCESS, RANK
from perflint.ir.bodies import written_name

__all__ = ["rules_out_first"]


def rules_out_first(test: ast.expr, *, holds: bool) -> bool:
    """Whether the first process never comes where a test holds, or where it does not."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return rules_out_first(test.operand, holds=not holds)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        if RANK.search(written_name(_asked(test.left))) is None or not _holds_zero(test.comparators[0]):
            return False
        return isinstance(test.ops[0], (ast.NotEq, ast.Gt, ast.NotIn) if holds else (ast.Eq, ast.LtE, ast.In))
    return not holds and FIRST_PROCESS.search(written_name(_asked(test))) is not None


def _asked(value: ast.expr) -> ast.expr:
    return value.func if isinstance(value, ast.Call) else value


def _holds_zero(value: ast.expr) -> bool:
    """`0`, or what says for one process as well: `(-1, 0)`."""
    if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
        return any(map(_holds_zero, value.elts))
    return isinstance(value, ast.Constant) and value.value == 0 and value.value is not False
