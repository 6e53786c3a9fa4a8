"""Values that are bound on every step and used on few."""

from __future__ import annotations

import ast
from typing import NamedTuple

from perflint.analysis.file_facts import FileFacts
from perflint.finding import Heat


class GuardedUse(NamedTuple):
    """A name bound by `statement` on every step, whose every use stands under `guard`."""

    name: str
    statement: ast.Assign
    guard: ast.If


def used_under_guard(node: ast.expr, ctx: FileFacts) -> GuardedUse | None:
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


def _is_only_read(value: ast.expr, node: ast.expr, ctx: FileFacts) -> bool:
    """Whether the bound value is the read and arithmetic on it: `loss.item() * accumulation`."""
    if value is node:
        return True
    return isinstance(value, ast.BinOp) and any(_is_only_read(part, node, ctx) for part in (value.left, value.right))


def _guard_of(use: ast.Name, statement: ast.stmt, ctx: FileFacts) -> ast.If | None:
    """The outermost `if` around a use, beside the statement that binds the value, that makes it rarer."""
    around = rare_branch(use, ctx)
    return around if around is not None and ctx.tree.parent(around) is ctx.tree.parent(statement) else None


def rare_branch(node: ast.AST, ctx: FileFacts) -> ast.If | None:
    """The outermost `if` around `node` in its loop whose body runs less often than a step."""
    for test, holds in ctx.conditions(node, exits=False):
        branch = ctx.tree.statement_of(test)
        if holds and isinstance(branch, ast.If) and ctx.loops(test) == ctx.loops(node):
            if ctx.heat(branch.body[0]) < Heat.STEP:
                return branch
    return None
