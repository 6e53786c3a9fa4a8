"""Whether code that writes attention out names a fused one as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import CLASS, Context, Ref, attention, class_of, last_name
from perflint.api.loops import names_in


def has_fused_way(node: ast.AST, ctx: Context) -> bool:
    """Whether the code names a fused attention: the written-out one is its fallback, or was chosen over it."""
    if ctx.mentions(*attention.DISPATCHERS):
        return True
    owner = outermost_class(node, ctx)
    if not isinstance(owner, ast.ClassDef):
        return ctx.mentions(*attention.FUSED)
    below = [Ref(CLASS, *item) for item in ctx.program.whole.derived_from(ctx.path, owner.name)]
    family = [(owner, ctx), *((item, ctx) for item in _relatives(owner, ctx))]
    family += [found for ref in below if ref.path != ctx.path for found in class_of(ref, ctx)]
    return any(there.mentions(*attention.FUSED) and _names_fused(item, there) for item, there in family)


def _names_fused(owner: ast.ClassDef, ctx: Context) -> bool:
    statements = ctx.tree.naming(attention.FUSED, owner)
    return any(last_name(part) in attention.FUSED for item in statements for part in ctx.tree.own(item))


def outermost_class(node: ast.AST, ctx: Context) -> ast.AST | None:
    """The outermost class around a node, else None."""
    found = None
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, ast.ClassDef):
            found = outer
    return found


def _relatives(owner: ast.ClassDef, ctx: Context) -> Iterator[ast.ClassDef]:
    """Classes of the file that derive from `owner`, are derived from by it, or carry its name in theirs."""
    bases = {name for base in owner.bases for name in names_in(base)}
    for item in ctx.tree.module.body:
        if not isinstance(item, ast.ClassDef) or item is owner:
            continue
        derived = any(owner.name in set(names_in(base)) for base in item.bases)
        if derived or item.name in bases or owner.name in item.name:
            yield item
