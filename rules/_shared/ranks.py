"""How many dimensions queries and keys have, by what reshapes and transposes them."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from perflint.api import Context, callee_name

#: `key.transpose(1, 2)` swaps the last two of three dimensions where it is a factor, or heads and positions before.
_HEADS = 2


def rank_of_factors(factors: Iterable[ast.expr], ctx: Context) -> int:
    """The number of dimensions of a product of two matrices; 0 where it is not written, or written in two ways."""
    factors = tuple(factors)
    found = {_swapped(factor, at_least=1) for factor in factors}
    found |= {_swapped(item, at_least=_HEADS + 1) for factor in factors for item in ctx.inference.origins(factor)}
    found = found - {0} or {_viewed(factor, ctx) for factor in factors} - {0}
    return found.pop() if len(found) == 1 else 0


def _swapped(node: ast.expr, at_least: int) -> int:
    """4 for `key.transpose(2, 3)` and `key.permute(0, 2, 3, 1)`; 0 for `key.transpose(-2, -1)`."""
    if isinstance(node, ast.BinOp):
        return _swapped(node.left, at_least)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return 0
    order = [item.value for item in node.args if isinstance(item, ast.Constant) and isinstance(item.value, int)]
    if callee_name(node) == "permute":
        return len(order)
    if callee_name(node) not in ("transpose", "swapaxes") or len(order) != 2 or abs(order[0] - order[1]) != 1:
        return 0
    return max(order) + 1 if max(order) >= at_least else 0


def _viewed(node: ast.expr, ctx: Context) -> int:
    """4 for `projected.view(batch, length, heads, width).transpose(1, 2)`, by whatever name."""
    for origin in (node, *ctx.inference.origins(node)):
        value = origin
        while isinstance(value, (ast.Call, ast.BinOp)):
            if isinstance(value, ast.BinOp):
                value = value.left
            elif not isinstance(value.func, ast.Attribute):
                break
            elif value.func.attr in ("view", "reshape", "permute") and len(value.args) > 1:
                return len(value.args)
            else:
                value = value.func.value
    return 0
