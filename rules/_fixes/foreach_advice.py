"""What to write instead of a loop that updates one parameter after the other."""

from __future__ import annotations

import ast

from perflint.api import Context
from perflint.api.parameters import Update

#: What only adds, or takes away.
_ADDING = frozenset({"add_", "sub_", "Add", "Sub"})


def advice_for(node: ast.For, updates: list[Update], ctx: Context) -> str:
    """What does the updates of a loop at once: by what they compute, and of how many lists."""
    text = " ".join(ctx.text(update.node) for update in updates)
    methods = {update.method for update in updates}
    if methods & {"clamp_", "clip_", "clamp_min_", "clamp_max_"}:
        return "Use `torch._foreach_clamp_min_` and `torch._foreach_clamp_max_` on a list of all of them."
    if len(updates) == 1 and ".grad" in text and methods & {"mul_", "div_", "Mult", "Div"}:
        return "Use `torch._foreach_mul_` on a list of all gradients, or `torch.nn.utils.clip_grad_norm_`."
    if ".grad" in text:
        return "Use an optimizer such as `torch.optim.SGD`, or `torch._foreach_add_` on lists."
    if len(updates) == 1 and methods & {"mul_", "div_", "Mult", "Div"}:
        return "Use `torch._foreach_mul_` on a list of all of them."
    if methods <= _ADDING:
        return "Use `torch._foreach_add_` on two lists."
    if isinstance(node.target, ast.Tuple) and len(node.target.elts) > 2:
        return "Use `torch._foreach_mul` and `torch._foreach_add` on lists of all of them."
    return (
        "Use `torch._foreach_lerp_` on two lists, or `torch.optim.swa_utils.AveragedModel` with `get_ema_multi_avg_fn`."
    )
