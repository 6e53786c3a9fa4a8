"""TPL612: key and value heads repeated in memory for an attention that takes them grouped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Calls,
    Confidence,
    Context,
    Finding,
    Heat,
    Impact,
    Rule,
    argument,
    is_constant,
)
from perflint.api.layers import repetition_of_heads

_ATTENTION = "torch.nn.functional.scaled_dot_product_attention"
#: `enable_gqa` is there since this version.
_SINCE = (2, 5)


class RepeatedKvHeads(Rule):
    """Key and value heads are repeated in memory, although the attention call takes them grouped.

    What it does

    Reports `scaled_dot_product_attention` without a mask tensor whose keys and values were repeated over heads.

    Why is this slow?

    The repetition writes each key and value once per query head of its group, and the attention reads all of them
    again. Both are activations of every layer, and a backward pass sums the copies. The flash kernel shares a key head
    among the query heads of a group by itself.

    What to do

    Pass keys and values as they are, with `enable_gqa=True`.

    Fix safety

    No fix: the order of the repeated heads has to be the one of `repeat_interleave`.

    Not reported

    - Calls with a mask tensor: grouped heads then leave the flash kernel.
    - Projects that support torch before 2.5.

    Known limitations

    - float32 inputs run in the math kernel, which repeats the heads itself.

    References

    - `torch.nn.functional.scaled_dot_product_attention`:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
    """

    code, name = "TPL612", "repeated-kv-heads"
    impact = Impact.MEDIUM
    confidence = Confidence.MEDIUM
    listens = (Calls("scaled_dot_product_attention"),)
    at_least = Heat.STEP
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        key, value = argument(node, 1, "key"), argument(node, 2, "value")
        if key is None or value is None or (ctx.torch_version or _SINCE) < _SINCE:
            return
        if not ctx.is_call_of(node, _ATTENTION) or _is_masked(node):
            return
        repeated = repetition_of_heads(key, ctx)
        if repeated is None or repetition_of_heads(value, ctx) is None:
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(repeated)}` copies the key heads for every group of query heads; it {ctx.heat(node).phrase}.",
            advice="Pass keys and values without repeating them, and `enable_gqa=True`.",
            related=(ctx.hop(repeated, "the heads are repeated here"),),
        )


def _is_masked(node: ast.Call) -> bool:
    mask = argument(node, 3, "attn_mask")
    return mask is not None and not is_constant(mask, None)
