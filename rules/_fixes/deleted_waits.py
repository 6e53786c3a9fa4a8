"""Waits that are deleted, with a test around them that is there for them alone."""

from __future__ import annotations

import ast

from perflint.api import Applicability, Context, Effect, Fix
from perflint.api.phases import asks_hardware

#: What to look for before such a call goes.
_RELIES = {
    Effect.WAITS: "look for asynchronous copies to the host, and work on other streams, that are read after it",
    Effect.MEETS: "look for files, weights or counters that another process reads after it",
}


def without_wait(node: ast.Call, effect: Effect, ctx: Context) -> Fix | None:
    """The call goes, with a test around it that only asks whether there are devices or other processes."""
    statement = ctx.tree.statement_of(node)
    if not isinstance(statement, ast.Expr) or statement.value is not node:
        return None
    outer = ctx.tree.parent(statement)
    if isinstance(outer, ast.If) and outer.body == [statement] and not outer.orelse and asks_hardware(outer.test, ctx):
        statement = outer
    return Fix(
        "Delete the synchronization",
        Applicability.UNSAFE,
        ctx.edit.delete_statement(statement),
        reason=_RELIES[effect],
        numerics="same bits",
    )
