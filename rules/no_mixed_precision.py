"""TPL701: a training loop in float32."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Confidence, Context, Does, Finding, Impact, Loops, Rule, Tier, frameworks, precision

from ._shared.training import (
    BACKWARD,
    identifiers_near,
    is_about_agents,
    is_training_loop,
    shares_on_the_host,
    trains_one_layer,
)


class NoMixedPrecision(Rule):
    """A model is trained on an accelerator in float32 throughout.

    Why it is slow
    Tensor cores multiply bfloat16 and float16 several times as fast as float32, and such tensors take half the memory
    traffic. How much of it a training gains depends on the model and the device, and only a measurement tells: this
    could not be measured for this page.

    What to write instead
    `with torch.autocast("cuda", dtype=torch.bfloat16):` around the forward and the loss, not around the backward.
    bfloat16 needs no `GradScaler`; float16, for devices older than Ampere, does.

    When to leave it
    Models loaded in bfloat16, which need neither autocast nor a `GradScaler`; the CPU, MPS, devices without tensor
    cores, scientific code that needs all digits, models that are too small to keep the device busy (agents of
    reinforcement learning), and loops whose precision is set out of sight. perflint is silent where the file, or
    code that the loop runs or is run by, speaks of a narrower type, and where accelerate, Lightning, DeepSpeed or a
    Trainer runs the loop. Nothing in the source proves a gain, which is why this rule is not on by default.

    Fix safety
    There is no automatic fix: results change.
    """

    code, name = "TPL701", "no-mixed-precision"
    tier = Tier.EXTRA
    impact = Impact.HIGH
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
            "This loop trains in float32: neither its file nor what it runs speaks of a narrower type.",
            advice='Run the forward and the loss under `torch.autocast("cuda", dtype=torch.bfloat16)`, and measure.',
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
