"""How sure it is that a value is a loader, by its kind or by what is done with its batches."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.kind import Tag
from perflint.finding import Confidence
from perflint.syntax.walk import walk

#: Inputs and targets.
_PAIR = 2


def loader_confidence(source: ast.expr, ctx: FileFacts) -> Confidence | None:
    """How sure it is that `source` is a loader, None when it is something else."""
    kind = ctx.kind(source)
    if kind.tag is Tag.LOADER:
        return min(kind.certainty, Confidence.HIGH)
    if any(ctx.program.is_loader(ref) for ref in ctx.refs(source)):
        return Confidence.HIGH
    if kind.known or not isinstance(source, (ast.Name, ast.Attribute)) or ctx.refs(source):
        return None
    return Confidence.MEDIUM if ctx.program.looks_like_loader(ctx.text(source)) else None


def confidence_by_use(node: ast.Call, source: ast.expr, ctx: FileFacts) -> Confidence | None:
    """How sure it is that something unknown is a loader because parts of what it gives are moved to a device."""
    statement = ctx.tree.statement_of(node)
    if ctx.kind(source).known or not isinstance(statement, ast.Assign) or statement.value is not node:
        return None
    target = statement.targets[0]
    parts = [item.id for item in getattr(target, "elts", []) if isinstance(item, ast.Name)]
    function = ctx.tree.function_of(node)
    if len(parts) < _PAIR or function is None:
        return None
    moved = {
        part.func.value.id
        for part in walk(function)
        if isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in ("to", "cuda")
        and isinstance(part.func.value, ast.Name)
        and part.lineno >= statement.lineno
    }
    return Confidence.MEDIUM if moved.issuperset(parts) else None
