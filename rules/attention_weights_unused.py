"""TPL610: attention weights that are computed and dropped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    EXTERNAL_INSTANCE,
    Applicability,
    Context,
    Finding,
    Fix,
    Heat,
    Impact,
    Nodes,
    Rule,
    argument,
    canonical,
    has_unpacking,
    is_constant,
    last_name,
)
from perflint.api.gradients import first_taken, only_first_used

_ATTENTION = "torch.nn.MultiheadAttention"
#: The position of `need_weights` in `MultiheadAttention.forward`.
_NEED_WEIGHTS = 4
#: What sees a module's outputs without being written at its call.
_HOOKS = ("register_forward_hook", "register_module_forward_hook")


class AttentionWeightsUnused(Rule):
    """`nn.MultiheadAttention` returns attention weights that nothing uses.

    What it does

    Reports calls of `nn.MultiheadAttention` that keep `need_weights=True` (the default) and discard the second
    result.

    Why is this slow?

    With `need_weights`, the module multiplies, masks, takes the softmax and averages over heads in separate steps,
    and keeps an L x L matrix per head. Without it, it calls `scaled_dot_product_attention`, one kernel.

    What to do

    Write `out, _ = attention(q, k, v, need_weights=False)`. The second result is then None.

    Fix safety

    Unsafe: same to rounding (1e-7). Code outside of the file may read the weights, and a row whose keys are all
    masked may give zeros instead of NaN.

    Not reported

    - Weights that are used, returned, stored or read by a forward hook.
    - Modules of other classes.

    Known limitations

    Before torch 2.0 the option saves only the average over heads.

    Measured

    512 tokens took 2.4 times as long with the weights in training, and 1.0 to 1.1 times in evaluation without
    gradients, where the module has a fast path (torch 2.13, CPU).

    References

    - `torch.nn.MultiheadAttention`: https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html
    """

    code, name = "TPL610", "attention-weights-unused"
    impact = Impact.MEDIUM
    listens = (Nodes(ast.Assign, ast.Subscript),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if not ctx.program.mentions(("MultiheadAttention",)):
            return
        call = first_taken(node) if isinstance(node, ast.Subscript) else only_first_used(node, ctx)
        if call is None or not _is_attention(call.func, ctx) or not _asks_for_weights(call):
            return
        if ctx.mentions(*_HOOKS) or ctx.program.whole.is_hooked(last_name(call.func)):
            return
        name = ctx.text(call.func)
        yield self.finding(
            call,
            ctx,
            f"`{name}` computes attention weights that nothing uses, and so bypasses the fused "
            "`scaled_dot_product_attention`.",
            advice=f"Pass `need_weights=False` to `{name}`.",
            impact=Impact.LOW if ctx.grad_off(call) else None,
            fix=Fix(
                "Do not compute the attention weights",
                Applicability.UNSAFE,
                (ctx.edit.set_argument(call, _NEED_WEIGHTS, "need_weights", "False"),),
                reason="the second result becomes None, and a fully masked row gives numbers instead of NaN",
                numerics="same to rounding",
            ),
        )


def _is_attention(func: ast.expr, ctx: Context) -> bool:
    """Whether every value that is called may only be the library's module."""
    if not isinstance(func, (ast.Name, ast.Attribute, ast.Subscript)):
        return False
    refs = ctx.refs(func)
    if refs:
        return all(ref.kind == EXTERNAL_INSTANCE and canonical(ref.name) == _ATTENTION for ref in refs)
    return canonical(ctx.kind(func).qualified) == _ATTENTION


def _asks_for_weights(call: ast.Call) -> bool:
    if has_unpacking(call):
        return False
    wanted = argument(call, _NEED_WEIGHTS, "need_weights")
    return wanted is None or is_constant(wanted, True)  # noqa: FBT003 - the literal that is looked for
