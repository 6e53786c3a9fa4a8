"""TPL613: a dense causal mask given to an attention that knows causality."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Heat, Impact, Rule, argument, is_constant
from perflint.api.layers import is_triangle

_ATTENTION = "torch.nn.functional.scaled_dot_product_attention"


class DenseCausalMask(Rule):
    """A triangular mask passed as `attn_mask` keeps the attention from its flash kernel; `is_causal=True` does not.

    What it does

    Reports `scaled_dot_product_attention` whose mask is a triangle of ones, and nothing else.

    Why is this slow?

    The flash kernel takes no mask tensor. With one, the call runs in a slower kernel that reads the L x L mask for
    every head and also computes the half that the mask removes. With `is_causal=True` that half is skipped.

    What to do

    Pass `is_causal=True` and no mask. Queries and keys must have the same length: with a cache of keys, the triangle of
    `is_causal` starts at the top left.

    Fix safety

    No fix: whether queries and keys have the same length is not known from the source.

    Not reported

    - Masks that are joined with padding, windows or document boundaries.
    - Masks that are passed in by a caller.

    References

    - `torch.nn.functional.scaled_dot_product_attention`:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
    - `torch.nn.attention.SDPBackend`: https://docs.pytorch.org/docs/stable/generated/torch.nn.attention.SDPBackend.html
    """

    code, name = "TPL613", "dense-causal-mask"
    impact = Impact.MEDIUM
    confidence = Confidence.MEDIUM
    listens = (Calls("scaled_dot_product_attention"),)
    at_least = Heat.STEP
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        mask = argument(node, 3, "attn_mask")
        if mask is None or is_constant(mask, None) or not ctx.is_call_of(node, _ATTENTION):
            return
        if not is_triangle(mask, ctx):
            return
        yield self.finding(
            node,
            ctx,
            f"The dense causal mask `{ctx.text(mask)}` keeps this attention from the flash kernel; it "
            f"{ctx.heat(node).phrase}.",
            advice="Pass `is_causal=True` instead of the mask, if queries and keys have the same length.",
        )
