"""What the rules about transfers share: what stands at the beginning of a chain that ends in a move."""

from __future__ import annotations

import ast

from perflint.api import Context, tensors

#: Methods between a constructor and the move that leave the advice what it is.
_BETWEEN = (
    tensors.VIEW_METHODS
    | tensors.CAST_METHODS
    | frozenset("repeat expand normal_ uniform_ fill_ zero_ random_ bernoulli_ exponential_ tile clone".split())
)


def constructor(value: ast.expr, functions: frozenset[str], ctx: Context) -> ast.Call | None:
    """The call of one of `functions` that a chain begins with: `torch.zeros(n)` of `torch.zeros(n).long().view(-1)`."""
    while isinstance(value, ast.Call):
        if ctx.target(value.func) in functions:
            return value
        if not isinstance(value.func, ast.Attribute) or value.func.attr not in _BETWEEN:
            return None
        value = value.func.value
    return None
