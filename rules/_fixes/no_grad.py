"""`@torch.no_grad()` on a function that evaluates, and what may be different under it."""

from __future__ import annotations

import ast

from perflint.api import (
    Applicability,
    Context,
    Fix,
    Tag,
)
from perflint.api.gradients import (
    gradients_in_reach,
    grows_argument,
    handed_out,
    has_fast_path,
    is_number_without_graph,
    is_scripted,
    is_under_autocast,
    made_from_forwards,
    may_learn,
    outlasting,
    shown_as_text,
    tells_of_gradients,
)


def switch_off(
    function: ast.FunctionDef | ast.AsyncFunctionDef, forward: ast.Call, parts: list[ast.AST], ctx: Context
) -> Fix | None:
    if isinstance(function, ast.AsyncFunctionDef):
        return None
    spelling, imports = ctx.edit.ensure_import("torch", at=function)
    made = made_from_forwards(parts, ctx)
    reason, fast = "", has_fast_path(ctx)
    if ctx.kind(forward.func).tag is not Tag.MODULE:
        reason = f"`{ctx.text(forward.func)}` is not known to be a module"
    elif any(isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Store) for part in parts):
        reason = f"`{function.name}` stores results, which may be needed with their graph"
    elif any(isinstance(part, (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom)) for part in parts):
        reason = f"`{function.name}` yields results, which may be needed with their graph"
    elif any(grows_argument(part, function, made, ctx) for part in parts):
        reason = f"`{function.name}` adds to its arguments, which may be needed with their graph"
    elif (shown := shown_as_text(parts, made, ctx)) is not None:
        reason = f"the text of `{ctx.text(shown)}` may contain `grad_fn=...`, which would disappear"
    elif (call := handed_out(function, parts, ctx)) is not None:
        reason = f"`{ctx.text(call.func)}` may keep a tensor from here, which may be needed with its graph"
    elif is_scripted(function, ctx):
        reason = "`torch.jit` compiles the source of the function, which the decorator would hide"
    elif gradients_in_reach(parts, ctx):
        reason = "a callee enables gradients itself"
    elif tells_of_gradients(parts, ctx):
        reason = "a callee behaves differently without gradients, or registers a hook on its graph, and raises"
    elif kept := outlasting(parts, ctx):
        reason = kept
    elif ctx.program.function(ctx.own_scope(function)).writes:
        reason = f"`{function.name}` writes to objects that other code may use with their graph"
    elif is_under_autocast(function, ctx):
        reason = "autocast around the call would cache weights that it casts without gradients"
    elif ctx.program.whole.compiles:
        reason = "compiled code is recompiled without gradients, and may round differently"
    elif (unseen := next((part for part in parts if may_learn(part, ctx)), None)) is not None:
        reason = f"`{ctx.text(unseen)}` is unknown, and may enable gradients itself"
    elif fast:
        reason = "attention and LSTMs of torch round differently without gradients, and padded positions become zeros"
    elif not all(is_number_without_graph(part.value, ctx) for part in parts if isinstance(part, ast.Return)):
        reason = f"`{function.name}` may return tensors, which may be needed with their graph"
    return Fix(
        "Disable gradients",
        Applicability.UNSAFE if reason else Applicability.SAFE,
        (*imports, ctx.edit.decorate(function, f"@{spelling}.no_grad()")),
        reason=reason,
        numerics="same to rounding" if fast else "same bits",
    )
