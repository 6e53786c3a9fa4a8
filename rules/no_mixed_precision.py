"""TPL701: a training loop in float32."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Confidence, Context, Does, Finding, Impact, Loops, Rule, Tier, frameworks, precision
from perflint.api.phases import (
    BACKWARD,
    identifiers_near,
    is_about_agents,
    is_training_loop,
    shares_on_the_host,
    trains_one_layer,
)


class NoMixedPrecision(Rule):
    """A model is trained on an accelerator in float32 throughout.

    What it does

    Reports training loops on an accelerator without autocast and without a lower-precision dtype.

    Why is this slow?

    Tensor cores multiply bfloat16 and float16 several times as fast as float32, and such tensors need half the memory
    traffic.

    What to do

    Put `with torch.autocast("cuda", dtype=torch.bfloat16):` around the forward pass and the loss, not around the
    backward pass. bfloat16 needs no `GradScaler`; float16, for devices older than Ampere, does.

    Fix safety

    No fix: results change.

    Not reported

    - Models that are loaded in bfloat16, which need neither autocast nor a `GradScaler`.
    - The CPU, MPS, and devices without tensor cores.
    - Agents of reinforcement learning, whose models are too small to fill the device.
    - Files, callers and callees that mention a narrower dtype.
    - Loops that accelerate, Lightning, DeepSpeed or a Trainer runs.

    Known limitations

    The gain depends on the model and the device; it was not measured for this page. The source does not prove a gain,
    so this rule is off by default. Scientific code may need full precision.

    References

    - Automatic mixed precision: https://docs.pytorch.org/docs/stable/amp.html
    """

    code, name = "TPL701", "no-mixed-precision"
    tier = Tier.EXTRA
    impact = Impact.HIGH
    lasting = True
    confidence = Confidence.MEDIUM
    listens = (Loops(*BACKWARD),)
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if not is_training_loop(node, ctx) or _is_managed(node, ctx) or is_about_agents(node, ctx):
            return
        if trains_one_layer(node, ctx) or shares_on_the_host(ctx):
            return
        names = set(identifiers_near(node, ctx)) if ctx.mentions("torch") else set()
        if not names & precision.ACCELERATORS or names & precision.NEEDS_DIGITS or _speaks_of_precision(names):
            return
        yield self.finding(
            node,
            ctx,
            "This loop trains in float32: its file and its callees use no narrower dtype.",
            advice=(
                'Run the forward pass and the loss under `torch.autocast("cuda", dtype=torch.bfloat16)`, and measure.'
            ),
        )


def _speaks_of_precision(names: set[str]) -> bool:
    if names & precision.NARROWER_NAMES:
        return True
    return any(part in name.lower() for name in names for part in precision.NARROWER)


def _is_managed(node: ast.AST, ctx: Context) -> bool:
    """Whether a framework's class holds the loop, and runs it in the precision it is told."""
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, ast.ClassDef):
            bases = [ctx.target(base) or ctx.text(base) for base in outer.bases]
            if any(base.endswith("Pipeline") for base in bases):
                return True  # who loads it says of what type it is
            return Does.AUTOCASTS in frameworks.does_for(bases)
    return False
