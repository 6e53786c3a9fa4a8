"""TPL615: logits over a whole vocabulary, kept for a cross entropy that can be computed in chunks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Heat, Impact, Phase, Rule, argument, arguments_of
from perflint.api.layers import projection_behind, value_of

_FUNCTION, _MODULE = "torch.nn.functional.cross_entropy", "torch.nn.CrossEntropyLoss"
#: Columns from which the logits of a token take more memory than the activations of several layers.
_WIDE = 32_000
#: `linear_cross_entropy` is there since this version.
_SINCE = (2, 13)


class VocabularyLogits(Rule):
    """The logits of all positions over the whole vocabulary are kept for the backward pass of a cross entropy.

    What it does

    Reports a cross entropy in a training step of what a linear layer with 32,000 outputs or more gives.

    Why is this slow?

    The logits, their float32 log-softmax and their gradient are each as large as the number of tokens times the
    vocabulary: for 16,384 tokens and 50,304 words 3.3 GB each in float32. They are often the peak of the step's memory,
    which limits the batch.

    What to do

    Compute the layer and the loss in one call that goes through the tokens in chunks:
    `torch.nn.functional.linear_cross_entropy(hidden, head.weight, targets, options=LinearCrossEntropyOptions())` (torch
    2.13), or the fused loss of Liger Kernel or cut-cross-entropy.

    Fix safety

    No fix: the logits may be wanted elsewhere, and the sums are rounded in another order.

    Not reported

    - Layers whose width the source does not show, and losses outside of training.
    - Code under `torch.compile`, which may fuse the loss.

    Measured

    4,096 tokens of 768 numbers, 50,304 words, forward and backward pass: the process needs at most 2,753 MiB with both
    calls and 789 MiB with `linear_cross_entropy` in chunks (CPU, float32, torch 2.13). It is not faster there: what it
    saves is memory.

    References

    - `torch.nn.functional.linear_cross_entropy`:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.linear_cross_entropy.html
    - Liger Kernel: https://github.com/linkedin/Liger-Kernel
    """

    code, name = "TPL615", "vocabulary-logits"
    impact = Impact.LOW
    confidence = Confidence.MEDIUM
    at_least = Heat.STEP
    needs_accelerator = True
    listens = (Calls(),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        logits = argument(node, 0, "input")
        if logits is None or not _may_have_target(node):
            return
        if not ctx.is_call_of(node, _FUNCTION, _MODULE) or ctx.grad_off(node):
            return
        if ctx.phase(node).phase is Phase.EVALUATE or ctx.program.is_always_compiled(ctx.scope(node)):
            return
        head = projection_behind(value_of(logits), ctx.scope(node), ctx.program)
        if head is None or head.width < _WIDE:
            return
        yield self.finding(
            node,
            ctx,
            f"`{head.layer}` gives {head.width:,} numbers for each token, and this loss keeps all of them for the "
            "backward pass.",
            advice=_advice(ctx),
        )


def _may_have_target(call: ast.Call) -> bool:
    """Whether a call gives two things or more, as one must that compares logits with a target."""
    given = arguments_of(call)
    return len(given) > 1 or isinstance(given[0], ast.Starred)


def _advice(ctx: Context) -> str:
    if (ctx.torch_version or _SINCE) < _SINCE:
        return "Compute the layer and the loss in one fused call that takes the tokens in chunks (Liger Kernel)."
    return "Compute both with `F.linear_cross_entropy` and `options=`, which takes the tokens in chunks."
