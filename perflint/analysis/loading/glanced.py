"""Loaders that a function makes for a glance: it asks for the first batch, or goes through them and takes nothing, or
hands them back to callers that never read what they get.
"""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import callee_name


def is_glanced_at(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether all that happens to the loader that `call` makes is `next(iter(loader))` outside of a loop, a loop that
    throws its batches away, or a `return` of it that nobody takes.
    """
    statement = ctx.tree.parent(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        return False
    made = ctx.inference.flow.definition_at(targets[0])
    uses = ctx.inference.flow.uses_of(made) if made is not None else []
    return bool(uses) and all(
        _asks_once(use, ctx) or _throws_away(use, ctx) or _goes_to_nobody(use, ctx) for use in uses
    )


def _asks_once(use: ast.expr, ctx: FileFacts) -> bool:
    begun = ctx.tree.parent(use)
    asked = ctx.tree.parent(begun) if begun is not None else None
    names = [callee_name(part) for part in (begun, asked) if isinstance(part, ast.Call)]
    return names == ["iter", "next"] and not ctx.loops(use)


def _throws_away(use: ast.expr, ctx: FileFacts) -> bool:
    """`for _ in loader: pass`"""
    outer: ast.AST | None = use
    while isinstance(outer, (ast.expr, ast.keyword)):
        outer = ctx.tree.parent(outer)
    if not isinstance(outer, ast.For) or not isinstance(outer.target, ast.Name):
        return False
    return outer.target.id.startswith("_") and all(isinstance(part, ast.Pass) for part in outer.body)


def _goes_to_nobody(use: ast.expr, ctx: FileFacts) -> bool:
    """Whether a function returns it, and each caller binds it to a name that is never read."""
    around = ctx.tree.parent(use)
    place = around.elts.index(use) if isinstance(around, ast.Tuple) else None
    returned, function = (
        (ctx.tree.parent(around) if isinstance(around, ast.Tuple) else around),
        ctx.tree.function_of(use),
    )
    if not isinstance(returned, ast.Return) or function is None:
        return False
    edges = [edge for edge in ctx.program.callers(ctx.own_scope(function)) if not ctx.program.never_runs(edge.caller)]
    for edge in edges:
        there = None if edge.callback else ctx.at(edge.caller.path)
        call = there.inference.parameters.written.of(edge) if there is not None else None
        statement = there.tree.parent(call) if there is not None and call is not None else None
        if there is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return False
        target = statement.targets[0]
        if place is not None:
            target = target.elts[place] if isinstance(target, ast.Tuple) and place < len(target.elts) else target
        region = there.tree.function_of(statement) or there.tree.module
        if not isinstance(target, ast.Name) or any(
            isinstance(name.ctx, ast.Load) for name in there.tree.named(target.id, region)
        ):
            return False
    return bool(edges)
