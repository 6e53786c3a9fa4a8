"""Calls of which only the first result is used."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import is_constant


def first_taken(node: ast.Subscript) -> ast.Call | None:
    """The call of `call(...)[0]`."""
    return node.value if isinstance(node.value, ast.Call) and is_constant(node.slice, 0) else None


def only_first_used(node: ast.AST, ctx: FileFacts) -> ast.Call | None:
    """The call of `out, _ = call(...)` whose second result is never read, and of `out = call(...)` read by `out[0]`."""
    assert isinstance(node, ast.Assign)
    if not isinstance(node.value, ast.Call) or len(node.targets) != 1:
        return None
    target = node.targets[0]
    if isinstance(target, ast.Tuple) and len(target.elts) == 2:
        second = target.elts[1]
        return node.value if isinstance(second, ast.Name) and not _uses(second, ctx) else None
    if isinstance(target, ast.Name):
        uses = _uses(target, ctx)
        if uses and all(_is_first_of(use, ctx) for use in uses):
            return node.value
    return None


def _uses(target: ast.Name, ctx: FileFacts) -> list[ast.Name]:
    flow = ctx.inference.flow
    definition = flow.definition_at(target)
    return [target] if definition is None else flow.uses_of(definition)


def _is_first_of(use: ast.Name, ctx: FileFacts) -> bool:
    outer = ctx.tree.parent(use)
    return isinstance(outer, ast.Subscript) and outer.value is use and is_constant(outer.slice, 0)
