"""Loaders that a function makes for a glance: it asks for the first batch, or goes through them and takes nothing."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import callee_name


def is_glanced_at(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether all that happens to the loader that `call` makes is `next(iter(loader))` outside of a loop, or a loop
    that throws its batches away.
    """
    statement = ctx.tree.parent(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        return False
    made = ctx.inference.flow.definition_at(targets[0])
    uses = ctx.inference.flow.uses_of(made) if made is not None else []
    return bool(uses) and all(_asks_once(use, ctx) or _throws_away(use, ctx) for use in uses)


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
