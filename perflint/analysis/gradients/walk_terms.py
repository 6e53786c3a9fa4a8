"""Whether the sums that a walk over parameters takes are multiplied by zero."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir.notation import value_of
from perflint.syntax.walk import walk

_DEPTH = 3


def comes_to_nothing(node: ast.AST, parts: list[ast.AST], ctx: FileFacts) -> bool:
    """Whether all that a walk sums up is multiplied by zero wherever it goes: `loss + 0.0 * sum(...)`."""
    if isinstance(node, ast.expr):
        return _is_null(node, ctx, _DEPTH)
    assert isinstance(node, (ast.For, ast.AsyncFor))
    region = ctx.tree.function_of(node) or ctx.tree.module
    uses = [
        use
        for name in sorted(_summed(parts))
        for use in ctx.tree.named(name, region)
        if isinstance(use.ctx, ast.Load) and use.lineno > (node.end_lineno or node.lineno)
    ]
    return bool(uses) and all(_is_null(use, ctx, _DEPTH) for use in uses)


def _summed(parts: list[ast.AST]) -> set[str]:
    return {
        item.target.id
        for part in parts
        for item in walk(part)
        if isinstance(item, ast.AugAssign) and isinstance(item.target, ast.Name)
    }


def _is_null(node: ast.expr, ctx: FileFacts, depth: int) -> bool:
    """Whether the value of an expression ends in a product with zero: in its statement, or where a name takes it."""
    parent = ctx.tree.parent(node)
    while isinstance(parent, (ast.BinOp, ast.Call)) and node is not getattr(parent, "func", None):
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult):
            if _is_zero(parent.right if node is parent.left else parent.left, ctx):
                return True
        node, parent = parent, ctx.tree.parent(parent)
    if not depth or not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
        return False
    target = parent.targets[0]
    made = ctx.inference.flow.definition_at(target) if isinstance(target, ast.Name) else None
    uses = ctx.inference.flow.uses_of(made) if made is not None else []
    return bool(uses) and all(_is_null(use, ctx, depth - 1) for use in uses)


def _is_zero(factor: ast.expr, ctx: FileFacts) -> bool:
    """A literal zero, also by a name that is bound to nothing else."""
    literals = ctx.program.literals(value_of(factor), ctx.scope(factor)) or ()
    return bool(literals) and all(item[1] in ("int", "float") and item[2] == 0 for item in literals)
