"""Values that are bound on every step and used on few."""

from __future__ import annotations

import ast
from typing import NamedTuple

from perflint.analysis.file_facts import FileFacts
from perflint.finding import Heat
from perflint.syntax.walk import walk


class GuardedUse(NamedTuple):
    """A name bound by `statement` on every step, whose every use stands under `guard`."""

    name: str
    statement: ast.Assign
    guard: ast.If


def used_under_guard(node: ast.Call, ctx: FileFacts) -> GuardedUse | None:
    """The guard that every use of a value stands under, where the value is bound outside of it."""
    statement = ctx.tree.statement_of(node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or not _is_only_read(statement.value, node, ctx):
        return None
    flow = ctx.inference.flow
    definition = flow.definition_at(target)
    uses = flow.uses_of(definition) if definition is not None else []
    if not uses or any(ctx.heat(use) >= Heat.STEP or use.lineno <= statement.lineno for use in uses):
        return None
    guards_of = [_guard_of(use, statement, ctx) for use in uses]
    first = guards_of[0]
    if first is None or any(guard is not first for guard in guards_of):
        return None
    return GuardedUse(target.id, statement, first)


def _is_only_read(value: ast.expr, node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the bound value is the read and arithmetic on it: `loss.item() * accumulation`."""
    if value is node:
        return True
    return isinstance(value, ast.BinOp) and any(_is_only_read(part, node, ctx) for part in (value.left, value.right))


def _guard_of(use: ast.Name, statement: ast.stmt, ctx: FileFacts) -> ast.If | None:
    """The outermost `if` around a use, beside the statement that binds the value, that makes it rarer."""
    block = ctx.tree.parent(statement)
    child: ast.AST = use
    for outer in ctx.tree.ancestors(use):
        if outer is block:
            break
        child = outer
    if not isinstance(child, ast.If) or ctx.heat(child.body[0]) >= Heat.STEP:
        return None
    inside = {id(part) for item in child.body for part in walk(item)}
    return child if id(use) in inside else None
