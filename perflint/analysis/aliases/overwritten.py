"""Copies whose values nobody reads: the next thing done to them writes all of them."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts

#: Methods that write every element without a look at what was there, with what makes a tensor of that size instead.
_FILLS = {
    "fill_": "torch.full_like",
    "zero_": "torch.zeros_like",
    "copy_": "torch.empty_like",
    "normal_": "torch.randn_like",
    "uniform_": "torch.rand_like",
    "bernoulli_": "torch.empty_like",
    "random_": "torch.empty_like",
    "exponential_": "torch.empty_like",
}


def overwritten_by(clone: ast.Call, ctx: FileFacts) -> str | None:
    """What makes a tensor of the size of a copy: `torch.zeros_like` for `x.clone().zero_()`, and for a name that is
    bound to a copy and filled before anything reads it. None where its values may be read.
    """
    if (filled := _fill_of(clone, ctx)) is not None:
        return filled
    statement = ctx.tree.parent(clone)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    made = ctx.inference.flow.definition_at(target) if isinstance(target, ast.Name) else None
    uses = ctx.inference.flow.uses_of(made) if made is not None else []
    first = min(uses, key=lambda use: (use.lineno, use.col_offset), default=None)
    if first is None or (filled := _fill_of(first, ctx)) is None:
        return None
    filling = ctx.tree.statement_of(first)
    alike = ctx.tree.parent(filling) is ctx.tree.parent(statement) and ctx.loops(filling) == ctx.loops(statement)
    return filled if alike and isinstance(filling, ast.Expr) else None


def _fill_of(value: ast.expr, ctx: FileFacts) -> str | None:
    method = ctx.tree.parent(value)
    call = ctx.tree.parent(method) if isinstance(method, ast.Attribute) and method.value is value else None
    is_called = isinstance(call, ast.Call) and call.func is method
    return _FILLS.get(method.attr) if is_called and isinstance(method, ast.Attribute) else None
