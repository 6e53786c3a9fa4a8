"""Reads of every turn of which only that of the last turn counts: each overwrites the one before, and no turn looks."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.syntax.named import one_target
from perflint.syntax.tree import LoopNode


def only_last_counts(read: ast.expr, ctx: FileFacts) -> LoopNode | None:
    """The loop of whose turns only the last one's read is used, behind it: `value = loss.item()`, then `return value`.
    None where a turn uses it, or the read is a part of something else that a turn does.
    """
    statement, loops = ctx.tree.statement_of(read), ctx.loops(read)
    target = one_target(statement)
    if not loops or not isinstance(target, ast.Name) or ctx.tree.parent(statement) is not loops[0]:
        return None
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or not _is_all_of(read, statement, ctx):
        return None
    made = ctx.inference.flow.definition_at(target)
    uses = ctx.inference.flow.uses_of(made) if made is not None else []
    # A function that the loop has made, or calls, may look as well.
    scope, loop = ctx.tree.scope_of(statement), loops[0]
    behind = (ctx.tree.scope_of(use) is scope and loop not in ctx.tree.ancestors(use) for use in uses)
    return loop if uses and all(behind) else None


def _is_all_of(read: ast.expr, statement: ast.stmt, ctx: FileFacts) -> bool:
    """Whether the statement does no more than to read: `loss.cpu().data.numpy()`, `round(loss.item(), 3)`."""
    child: ast.AST = read
    for outer in ctx.tree.ancestors(read):
        if outer is statement:
            return True
        if isinstance(outer, ast.Call) and child is not outer.func:
            if not isinstance(outer.func, ast.Name) or outer.func.id not in ("float", "int", "bool", "round"):
                return False
        elif not isinstance(outer, (ast.Call, ast.Attribute, ast.Subscript, ast.BinOp, ast.UnaryOp)):
            return False
        child = outer
    return False
