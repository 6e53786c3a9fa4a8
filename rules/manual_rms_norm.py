"""TPL614: an RMS normalization that is multiplied out by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Heat, Impact, Rule
from perflint.api.layers import MOMENT_NAMES, ROOT_NAMES, rms_norm, roots_at

#: The CUDA kernel of `rms_norm`; before, the function computed the same steps as the written-out form.
_SINCE = (2, 9)


class ManualRmsNorm(Rule):
    """`x * rsqrt(mean(x ** 2) + eps)` runs as five kernels where `F.rms_norm` runs as one.

    What it does

    Reports a mean of squares over the last dimension whose reciprocal root scales the same tensor, in a forward pass.

    Why is this slow?

    Each step reads and writes the whole activation: a square, a mean, an addition, a root and two products, often in
    float32. `torch.nn.functional.rms_norm` reads it once and writes it once, forward and backward, and keeps less
    for the backward pass. A transformer has two of them in every layer.

    What to do

    Write `F.rms_norm(x, (x.shape[-1],), weight, eps)`, or use `torch.nn.RMSNorm`. It computes in float32 inside,
    whatever the dtype of `x`. Pass `1 + weight` where the weight is stored as an offset.

    Fix safety

    No fix: where the product with the weight is rounded differs, and so do the last bits.

    Not reported

    - Code that `torch.compile` traces: the compiler fuses these steps.
    - Projects that support torch before 2.9, where `F.rms_norm` computes the same steps.
    - Means over another dimension than the last one, or of something else than the scaled tensor.

    Measured

    Not measured here. The pull request that added the kernel reports about 9 times the speed on CUDA.

    References

    - `torch.nn.functional.rms_norm`: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.rms_norm.html
    - The fused kernel: https://github.com/pytorch/pytorch/pull/153666
    """

    code, name = "TPL614", "manual-rms-norm"
    impact = Impact.MEDIUM
    confidence = Confidence.MEDIUM
    listens = (Calls(*ROOT_NAMES, *MOMENT_NAMES),)
    at_least = Heat.STEP
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if (ctx.torch_version or _SINCE) < _SINCE or ctx.program.whole.compiles:
            return
        for root in roots_at(node, ctx):
            normed = rms_norm(root, ctx)
            if normed is None:
                continue
            name = ctx.text(normed)
            yield self.finding(
                root.node,
                ctx,
                f"The RMS norm of `{name}` {ctx.heat(node).phrase} as five kernels over the whole activation.",
                advice=f"`F.rms_norm({name}, ({name}.shape[-1],), weight, eps)` does it in one.",
            )
