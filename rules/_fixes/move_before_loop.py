"""The fix that moves a module once before the loops that do not change it."""

from __future__ import annotations

import ast

from perflint.api import Applicability, Context, Fix


def move_before_loop(node: ast.Call, statement: ast.stmt, ctx: Context) -> Fix | None:
    if not (isinstance(statement, ast.Expr) and statement.value is node):
        return None
    outermost: ast.stmt | None = None
    for loop in ctx.loops(node):
        if not ctx.inference.flow.is_invariant(node, loop, lambda call: call is node):
            break
        outermost = loop
    if outermost is None or ctx.tree.parent(statement) not in ctx.loops(node):
        return None
    return Fix(
        "Move the module once before the loop",
        Applicability.UNSAFE,
        (ctx.edit.insert_before(outermost, ctx.tree.text(statement)), *ctx.edit.delete_statement(statement)),
        reason="the module is moved even if the loop has no iterations",
    )
