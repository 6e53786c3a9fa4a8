"""TPL616: a layer normalization that is written out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Heat, Impact, Rule
from perflint.api.layers import (
    CHANNELS,
    LAST,
    LAST_TWO,
    MOMENT_NAMES,
    OF_PICTURE,
    OF_SERIES,
    PLANE,
    ROOT_NAMES,
    layer_norm,
    roots_at,
)

_KINDS = {
    LAST: "layer",
    CHANNELS: "layer",
    PLANE: "instance",
    LAST_TWO: "layer",
    OF_SERIES: "group",
    OF_PICTURE: "group",
}
_ONE_GROUP = "`F.group_norm({0}, 1, weight, bias, eps)` does it in one."
_INSTEAD = {
    LAST: "`F.layer_norm({0}, ({0}.shape[-1],), weight, bias, eps)` does it in one.",
    CHANNELS: "Permute `{0}` to channels last, and use `F.layer_norm` there: one kernel.",
    PLANE: "`F.instance_norm({0}, eps=eps)` does it in one.",
    LAST_TWO: "`F.layer_norm({0}, {0}.shape[-2:], weight, bias, eps)` does it in one.",
    OF_SERIES: _ONE_GROUP,
    OF_PICTURE: _ONE_GROUP,
}


class ManualLayerNorm(Rule):
    """`(x - mean(x)) / sqrt(var(x) + eps)` runs as seven kernels or more where `F.layer_norm` runs as one.

    What it does

    Reports a mean and a variance or deviation by which the same tensor is centered and scaled, in code that runs on
    every step: over the last dimension or the last two, over the channels of pictures, over their height and width, and
    over all but the batch.

    Why is this slow?

    Each operation reads and writes the whole activation, and the backward pass as many times again, from intermediate
    results that are all kept. `torch.nn.functional.layer_norm` reads it once and writes it once, in both directions.

    What to do

    Write `F.layer_norm(x, (x.shape[-1],), weight, bias, eps)`, or use `torch.nn.LayerNorm`. For channels of pictures
    permute to channels last before, and back after: `F.layer_norm(x.permute(0, 2, 3, 1), ...).permute(0, 3, 1, 2)`.
    Models in `torch.channels_last` need no copy for that. Over all but the batch it is `F.group_norm` with one group,
    and over height and width `F.instance_norm`. What divides by n - 1 (`x.std(-1)`, `x.var(-1)`) has its `weight`
    scaled by `sqrt((n - 1) / n)` for that.

    Fix safety

    No fix: sums are rounded in another order, and so the last bits differ.

    Not reported

    - Code that `torch.compile` traces: the compiler fuses these steps.
    - Normalizations whose mean or scale is used again, to undo them.
    - Normalizations over time alone, and over the batch.

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
            factor = " It divides by n, not by n - 1: scale `weight` by `sqrt((n - 1) / n)`." if found.unbiased else ""
            yield self.finding(
                root.node,
                ctx,
                f"The {_KINDS.get(found.dims, 'layer')} norm of `{name}` {ctx.heat(node).phrase} as seven kernels or "
                "more over the whole activation.",
                advice=_INSTEAD[found.dims].format(name) + factor,
            )
