"""TPL607: a model that is told to compute its attention the slow way."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Confidence,
    Context,
    Finding,
    Fix,
    Impact,
    Rule,
    is_constant,
    keyword,
    modules,
)
from perflint.api.gradients import is_chosen_on_purpose, needs_eager

_SWITCHES = ("attn_implementation", "_attn_implementation")


class EagerAttention(Rule):
    """A model is loaded with `attn_implementation="eager"`, but nothing reads its attention weights.

    What it does

    Reports `attn_implementation="eager"` in `from_pretrained` and similar calls of transformers.

    Why is this slow?

    By default, transformers uses `scaled_dot_product_attention`, which computes attention in one kernel. "eager"
    writes an L x L matrix per head and layer to memory, several times, and keeps it for the backward pass. On a GPU
    it also takes memory that grows with the square of the length.

    What to do

    Remove the argument, or pass `"sdpa"` or `"flash_attention_2"`.

    Fix safety

    Unsafe: same to rounding. A model without a fused path falls back to eager by itself, but code that perflint
    cannot see may read the weights.

    Not reported

    - Code that passes `output_attentions=True` or reads the weights.
    - Models with capped scores (Gemma 2), models without another path, and models with code of their own
      (`trust_remote_code`).
    - Hooks, interpretability, replaced attention, export, second derivatives, deterministic algorithms.
    - Code that compares implementations, or has a comment beside the argument.
    - Values that are chosen at run time.

    Measured

    On one CPU thread, the manual form took 1.65 times as long for 512 tokens and 3.5 times for 2048 (torch 2.13).

    References

    - `torch.nn.functional.scaled_dot_product_attention`:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
    - transformers, attention backends: https://huggingface.co/docs/transformers/attention_interface
    """

    code, name = "TPL607", "eager-attention"
    impact = Impact.MEDIUM
    listens = (Calls("from_pretrained", "from_config"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        switch = next((name for name in _SWITCHES if is_constant(keyword(node, name), "eager")), None)
        if switch is None or not _is_model(node, ctx):
            return
        if is_chosen_on_purpose(node, ctx) or needs_eager(node, ctx):
            return
        yield self.finding(
            node,
            ctx,
            f'`{switch}="eager"` makes each layer write its attention weights to memory, but nothing reads them.',
            advice=f'Remove `{switch}`, or pass `"sdpa"`.',
            confidence=Confidence.MEDIUM,
            fix=Fix(
                "Let transformers select the attention",
                Applicability.UNSAFE,
                (ctx.edit.remove_keyword(node, switch),),
                reason="code that perflint cannot see may read the attention weights",
                numerics="same to rounding",
            ),
        )


def _is_model(node: ast.Call, ctx: Context) -> bool:
    target = ctx.target(node.func)
    return target is not None and target.startswith("transformers.") and modules.makes_module(target)
