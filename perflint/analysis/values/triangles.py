"""Masks that are a triangle of ones on every way that leads to them, and nothing else."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.own_attributes import values_of
from perflint.ir.calls import argument, callee_name, is_constant

#: Each with the diagonal that makes it causal.
_TRIANGLES = {"tril": 0, "triu": 1}
_FILLED = frozenset({"ones", "full", "ones_like", "full_like"})
#: What gives the same mask in another dtype, place or shape, or its opposite.
_KEEPS = frozenset(
    "bool to cuda type float logical_not unsqueeze view expand masked_fill reshape eq __invert__ contiguous".split()
)


def is_triangle(node: ast.expr, ctx: FileFacts, depth: int = 6) -> bool:
    """Whether a value is a triangle of ones on all ways that lead to it."""
    if depth == 0:
        return False
    if isinstance(node, (ast.Name, ast.Attribute)):
        values = _values(node, ctx)
        return bool(values) and all(is_triangle(value, there, depth - 1) for value, there in values)
    if isinstance(node, ast.Subscript):
        return is_triangle(node.value, ctx, depth - 1)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Invert, ast.Not)):
        return is_triangle(node.operand, ctx, depth - 1)
    if isinstance(node, ast.Compare):
        return (
            len(node.ops) == 1
            and isinstance(node.comparators[0], ast.Constant)
            and is_triangle(node.left, ctx, depth - 1)
        )
    if not isinstance(node, ast.Call):
        return False
    name = callee_name(node)
    if name in _TRIANGLES:
        is_function = ctx.target(node.func) is not None and bool(node.args)
        filled = node.args[0] if is_function else _receiver(node)
        diagonal = argument(node, 1 if is_function else 0, "diagonal")
        is_causal = is_constant(diagonal, _TRIANGLES[name]) or (diagonal is None and _TRIANGLES[name] == 0)
        return is_causal and isinstance(filled, ast.Call) and callee_name(filled) in _FILLED
    receiver = _receiver(node)
    return name in _KEEPS and receiver is not None and is_triangle(receiver, ctx, depth - 1)


def _receiver(node: ast.Call) -> ast.expr | None:
    return node.func.value if isinstance(node.func, ast.Attribute) else None


def _values(node: ast.Name | ast.Attribute, ctx: FileFacts) -> list[tuple[ast.expr, FileFacts]]:
    """What a name, an attribute or a buffer of the object holds, [] where that is not all plain to see."""
    if isinstance(node, ast.Attribute):
        made = values_of(node, ctx)
    else:
        made = [(None if item.path else item.value, ctx) for item in ctx.inference.flow.definitions(node)]
    values = [(value, there) for value, there in made if value is not None]
    return values if len(values) == len(made) else []
