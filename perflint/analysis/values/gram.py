"""Products of a matrix with its own transpose, and the matrix."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts

_PRODUCTS = ("torch.matmul", "torch.mm", "numpy.matmul", "numpy.dot")


def factor_of_gram(node: ast.expr, ctx: FileFacts, depth: int = 3) -> ast.expr | None:
    """`X` of `X.T @ X`, also scaled or bound to a name before."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.MatMult):
            return _gram(node.left, node.right, ctx)
        if isinstance(node.op, (ast.Div, ast.Mult)):
            return factor_of_gram(node.left, ctx, depth)
        return None
    if isinstance(node, ast.Call) and len(node.args) == 2 and ctx.is_call_of(node, *_PRODUCTS):
        return _gram(node.args[0], node.args[1], ctx)
    if isinstance(node, ast.Name) and depth:
        made = ctx.inference.flow.definitions(node)
        if len(made) == 1 and made[0].value is not None and not made[0].path:
            return factor_of_gram(made[0].value, ctx, depth - 1)
    return None


def _gram(left: ast.expr, right: ast.expr, ctx: FileFacts) -> ast.expr | None:
    transposed = _transposed(left)
    return right if transposed is not None and ctx.text(transposed) == ctx.text(right) else None


def _transposed(node: ast.expr) -> ast.expr | None:
    """`X` of `X.T`, `X.mT`, `X.t()` and `X.transpose(...)`."""
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT", "H", "mH"):
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("t", "transpose"):
        return node.func.value
    return None
