"""`with torch.no_grad():` around the statement of a forward whose result is only detached."""

from __future__ import annotations

import ast

from perflint.api import Applicability, Context, Fix, walk


def switch_off_for_statement(node: ast.Call, ctx: Context) -> Fix | None:
    """A block around the statement, where it holds nothing but the forward and what is read of it."""
    statement = ctx.tree.parent(node)
    value: ast.AST = node
    while isinstance(statement, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(statement, ast.Call) and statement.func is not value:
            return None
        value, statement = statement, ctx.tree.parent(statement)
    if not isinstance(statement, (ast.Assign, ast.Return)) or statement.lineno != statement.end_lineno:
        return None
    if any(isinstance(part, (ast.Await, ast.Yield, ast.YieldFrom)) for part in walk(statement)):
        return None  # whoever runs meanwhile would have no gradients either
    spelling, imports = ctx.edit.ensure_import("torch", at=statement)
    return Fix(
        "Disable gradients for the forward pass",
        Applicability.UNSAFE,
        (
            *imports,
            ctx.edit.insert_before(statement, f"with {spelling}.no_grad():"),
            ctx.edit.replace(statement, f"{ctx.edit.indent_unit}{ctx.tree.text(statement)}"),
        ),
        reason="other effects of the forward pass may be needed with their graph",
    )
