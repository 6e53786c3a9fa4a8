"""`losses.append(loss.detach())`: a value that is kept without its graph."""

from __future__ import annotations

import ast

from perflint.api import Applicability, Context, Fix
from perflint.api.aliases import Accumulated, begins_here, uses_of_accumulated
from perflint.api.gradients import (
    becomes_text,
    has_own_tensors,
    is_itself_walked_back,
    is_walked_back,
    is_walked_back_with,
    value_of_sum,
)


def detached(kept: Accumulated, node: ast.AST, ctx: Context) -> Fix | None:
    """What is added in a loop, detached; None for `sum(losses.values()).backward()`: a dict has no `detach`."""
    loop = ctx.loops(node)[0]
    walked_back = is_walked_back(kept.value, loop, ctx)
    if walked_back and not is_itself_walked_back(kept.value, loop, ctx):
        return None
    value, reason = ctx.text(kept.value), ""
    if not walked_back:
        reason = f"`{value}` is not known to be a tensor"
    elif _may_be_no_tensor(kept.value, loop, node, ctx):
        reason = f"`{value}` may not be a tensor in every iteration, or may have no `detach`"
    elif not begins_here(kept.name, node, ctx):
        reason = f"`{kept.name}` starts as an object that other code may use with its graph"
    elif any(becomes_text(use, ctx) for use in uses_of_accumulated(kept, node, ctx)):
        reason = f"text made from `{kept.name}` may contain `grad_fn=...`, which would disappear"
    return Fix(
        "Accumulate the detached value",
        Applicability.UNSAFE if reason else Applicability.SAFE,
        (ctx.edit.append_method(kept.value, "detach()"),),
        reason=reason,
    )


def detached_argument(value: ast.expr, call: ast.Call, ctx: Context) -> Fix:
    """What a call keeps of what it is given, detached before it is passed."""
    return Fix(
        "Detach the kept value",
        Applicability.UNSAFE,
        (ctx.edit.append_method(value, "detach()"),),
        reason=f"what `{ctx.text(call.func)}` keeps may be used with its graph",
    )


def _may_be_no_tensor(value: ast.expr, loop: ast.stmt, node: ast.AST, ctx: Context) -> bool:
    """Whether what is kept may be something else than a plain tensor on some turn: nothing but a `backward` on every
    turn on which it is kept says that it is one, and a class that has a `backward` need have no `detach`.
    """
    name = value_of_sum(value)
    if not isinstance(name, ast.Name) or has_own_tensors(ctx):
        return True
    origins = ctx.inference.origins(name)
    if any(isinstance(item, (ast.Constant, ast.IfExp, ast.BoolOp, ast.UnaryOp)) for item in origins):
        return True
    return not is_walked_back_with(node, loop, ctx)
