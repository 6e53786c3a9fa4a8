"""The edits that take a `.clone()` away."""

from __future__ import annotations

import ast

from perflint.api import Context, Edit, Span


def without_clone(node: ast.Call, value: ast.expr, ctx: Context) -> tuple[Edit, ...]:
    """`x = x.clone()` says nothing without the clone."""
    statement = ctx.tree.parent(node)
    if isinstance(statement, ast.Assign) and [ctx.text(target) for target in statement.targets] == [ctx.text(value)]:
        if not ctx.edit.would_lose_comment(statement):
            return ctx.edit.delete_statement(statement)
    whole, call = ctx.tree.span(node), ".clone()"
    if whole.line != whole.end_line and ctx.source.lines[whole.end_line - 1][: whole.end_column - 1].endswith(call):
        return (Edit(Span(whole.end_line, whole.end_column - len(call), whole.end_line, whole.end_column), ""),)
    return (ctx.edit.replace(node, ctx.tree.text(value)),)
