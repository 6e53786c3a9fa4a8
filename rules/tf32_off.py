"""TPL703: float32 products at full precision on tensor cores."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Confidence, Context, Finding, Impact, Loops, Rule, Tier, precision
from perflint.api.phases import (
    first_loop_of_model,
    identifiers_below,
    identifiers_near,
    is_about_agents,
    is_loop_of_model,
    is_narrow,
    multiplies,
    own_factories,
    shares_on_the_host,
    trains_one_layer,
)

_SILENT = precision.NEEDS_DIGITS | precision.TENSOR_CORES | precision.POLICIES | {"half"}


class Tf32Off(Rule):
    """float32 matmuls run without TF32, so tensor cores stay idle.

    What it does

    Reports training code with float32 matmuls in a program that never allows TF32. One finding per file.

    Why is this slow?

    Since torch 1.12, float32 matmuls do not use the tensor cores of Ampere and later devices by default:
    `torch.get_float32_matmul_precision()` is "highest". "high" allows them, with a mantissa of about 10 bits.
    Convolutions use TF32 by default.

    What to do

    Call `torch.set_float32_matmul_precision("high")` once at the start. Do not combine it with the newer
    `torch.backends.cuda.matmul.fp32_precision = "tf32"`, after which the older functions raise RuntimeError.

    Fix safety

    No fix: results change in the fourth digit.

    Not reported

    - Programs that name any of the switches, also Hugging Face's `tf32=`.
    - Files that enter `autocast`, and code that runs in bfloat16 or float16 throughout.
    - Convolutional networks whose only matmul is the last layer, and agents of reinforcement learning.
    - The CPU.

    Known limitations

    The source does not prove a gain, so this rule is off by default. Devices before Ampere gain nothing, and some
    numbers need all digits.

    References

    - `torch.set_float32_matmul_precision`:
      https://docs.pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html
    - CUDA semantics, TensorFloat-32: https://docs.pytorch.org/docs/stable/notes/cuda.html#tf32-on-ampere
    """

    code, name = "TPL703", "tf32-off"
    tier = Tier.EXTRA
    impact = Impact.MEDIUM
    confidence = Confidence.MEDIUM
    listens = (Loops(),)
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if not ctx.mentions("torch") or not is_loop_of_model(node, ctx) or ctx.program.mentions(precision.TENSOR_CORES):
            return
        names = set(identifiers_near(node, ctx))
        if not names & precision.ACCELERATORS or names & _SILENT:
            return
        if any("mixed_precision" in name.lower() for name in names):
            return
        # By a name of its own, as `amp_autocast`, it is handed over, and may be no more than `nullcontext`.
        if "autocast" in identifiers_below(node, ctx):
            return
        # A function of the project's own by that name says nothing of what it makes.
        names -= {facts.name for facts in ctx.summary.functions.values()} & precision.PRODUCTS
        names -= own_factories(names, ctx)
        if (
            not multiplies(names)
            or is_about_agents(node, ctx)
            or trains_one_layer(node, ctx)
            or shares_on_the_host(ctx)
        ):
            return
        if is_narrow(ctx) or first_loop_of_model(ctx) is not node:
            return
        yield self.finding(
            node,
            ctx,
            "float32 matmuls in this loop run without TF32, so tensor cores stay idle.",
            advice='Call `torch.set_float32_matmul_precision("high")` at the start, and compare the results.',
        )
