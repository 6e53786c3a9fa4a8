"""TPL405: a training loop in a program that compiles nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.api import Confidence, Context, Finding, Impact, Loops, Rule, Tier, callee_name, walk

from ._training import BACKWARD, is_about_agents, is_training_loop


class UncompiledModel(Rule):
    """The model of a training loop is never compiled, although `torch.compile` may make its steps faster.

    Why it is slow
    Run eagerly, each small operation is a launch of its own and passes its result through memory. `torch.compile`
    fuses them. What it gains depends on the model. On a CPU with torch 2.13: six blocks of an MLP 1.2 times faster, a
    chain of pointwise operations on a million numbers 3.2 times, on ten thousand numbers 1.3 times slower, a single
    `nn.Linear(32)` 4.6 times slower. Compiling itself takes 2 to 30 seconds, so it pays from some number of steps on
    only.

    What to write instead
    Compile the whole model once, before the loop: `model.compile()`, or `model = torch.compile(model)` before it is
    handed to `DistributedDataParallel`. Measure some hundred steps with and without, after warming up, and keep what
    is faster.

    When to leave it
    Where memory is short, `mode="reduce-overhead"` is no way out: CUDA graphs keep more of it. Tiny models, control
    flow that depends on data, shapes that change all the time, hooks that come and go, devices without support,
    short runs and debugging. perflint cannot see a gain from the source, which is why this rule is not on by
    default. It is silent in programs that compile anything, by whatever switch, about agents whose networks are no
    convolutions, and where an epoch is a single step.

    Fix safety
    There is no automatic fix: keys of the state dict may change, and the gain has to be measured.
    """

    code, name = "TPL405", "uncompiled-model"
    tier = Tier.EXTRA
    impact = Impact.MEDIUM
    confidence = Confidence.MEDIUM
    listens = (Loops(*BACKWARD),)
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if ctx.program.whole.compiles or not is_training_loop(node, ctx):
            return
        if _is_full_batch(node, ctx) or (is_about_agents(node, ctx) and not ctx.mentions("Conv1d", "Conv2d", "Conv3d")):
            return
        yield self.finding(
            node,
            ctx,
            "This loop trains a model that is never compiled. `torch.compile` may make its steps faster; how much has "
            "to be measured.",
            advice="Call `model.compile()` before the loop, and time some hundred steps with and without it.",
        )


def _is_full_batch(node: ast.AST, ctx: Context) -> bool:
    """Whether each epoch is a single step on all data there is: a few hundred of them do not pay for compiling."""
    if not isinstance(node, ast.For) or not re.search(r"range\(.*epochs\b", ctx.text(node.iter)):
        return False
    return not any(
        isinstance(part, (ast.For, ast.While)) or (isinstance(part, ast.Call) and callee_name(part) == "next")
        for statement in node.body
        for part in walk(statement)
    )
