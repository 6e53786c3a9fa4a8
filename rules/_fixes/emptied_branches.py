"""Branches that would guard nothing any more once a statement is gone."""

from __future__ import annotations

import ast

from perflint.api import Context, callee_name, walk

#: Functions that answer without doing anything.
_ASKING = frozenset({"is_available", "is_initialized", "hasattr", "isinstance", "getattr", "len"})


def emptied(statement: ast.stmt, ctx: Context) -> ast.stmt:
    """The statement, or the `if` around it that would guard nothing any more."""
    while True:
        outer = ctx.tree.parent(statement)
        if not isinstance(outer, ast.If) or outer.orelse or outer.body != [statement] or not _only_asks(outer.test):
            return statement
        around = ctx.tree.parent(outer)
        if isinstance(around, ast.If) and outer in around.orelse:
            return statement  # an `elif`, or an `else` that would be left without a body
        if ctx.edit.would_lose_comment(outer, statement):
            return statement
        statement = outer


def _only_asks(test: ast.expr) -> bool:
    """Whether nothing happens when a test is left out: names, comparisons, and whether there is a device."""
    return all(
        not isinstance(part, (ast.Call, ast.Await, ast.NamedExpr, ast.Yield, ast.YieldFrom))
        or (isinstance(part, ast.Call) and callee_name(part) in _ASKING)
        for part in walk(test)
    )
