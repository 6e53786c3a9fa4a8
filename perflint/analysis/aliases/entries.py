"""What is done to the entries of a dict of tensors: replaced, removed, or written in place."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk

_IN_PLACE = frozenset("copy_ add_ sub_ mul_ div_ zero_ fill_ lerp_ addcmul_ addcdiv_ normal_ uniform_ clamp_".split())


def only_rebinds_entries(name: str, node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the function replaces or removes entries of the copy and never writes into one in place."""
    function = ctx.tree.function_of(node)
    if function is None:
        return False
    rebinds = False
    for part in walk(function):
        if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name) and part.value.id == name:
            if isinstance(part.ctx, (ast.Store, ast.Del)):
                if isinstance(ctx.tree.parent(part), ast.AugAssign):
                    return False
                rebinds = True
            elif _may_be_written(part, ctx):
                return False
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == name:
            if part.attr == "pop":
                rebinds = True
            elif part.attr in ("values", "items"):
                return False  # tensors get names of their own, and may be written into under them
    return rebinds


def _may_be_written(entry: ast.expr, ctx: FileFacts) -> bool:
    """Whether a tensor is written into where it is read: by a method or function in place, through a view of it, or
    under a name that it is bound to.
    """
    child: ast.AST = entry
    for outer in ctx.tree.ancestors(entry):
        if isinstance(outer, ast.Attribute):
            if outer.attr in _IN_PLACE or outer.attr.endswith("_"):
                return True
        elif isinstance(outer, ast.Subscript):
            if child is not outer.value:
                return False
            if isinstance(outer.ctx, ast.Store):
                return True
        elif isinstance(outer, ast.Call):
            if child is not outer.func:
                return callee_name(outer).endswith("_") or isinstance(child, ast.keyword)
        elif isinstance(outer, (ast.Assign, ast.NamedExpr, ast.AnnAssign)):
            targets = outer.targets if isinstance(outer, ast.Assign) else [outer.target]
            return not all(isinstance(target, ast.Subscript) for target in targets)
        elif isinstance(outer, ast.AugAssign):
            return child is outer.target
        elif not isinstance(outer, ast.keyword):
            return False
        child = outer
    return False
