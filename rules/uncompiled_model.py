"""TPL405: a training loop in a program that compiles nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Confidence, Context, Finding, Impact, Loops, Rule, Tier, callee_name, walk
from perflint.api.gradients import steps_no_model
from perflint.api.names import COUNTS_EPOCHS
from perflint.api.phases import BACKWARD, is_about_agents, is_training_loop, trains_one_layer

#: What a loop over optimizers calls, and nothing else.
_OF_OPTIMIZERS = frozenset(
    "step zero_grad update unscale_ items values keys range enumerate zip isinstance len".split()
)


class UncompiledModel(Rule):
    """The model of a training loop is never compiled, although `torch.compile` may make its steps faster.

    What it does

    Reports a training loop whose model no part of the program compiles.

    Why is this slow?

    In eager mode each small operation launches its own kernel and passes its result through memory. `torch.compile`
    fuses them. The gain depends on the model. Compilation takes 2 to 30 seconds, so it pays only for long runs.

    What to do

    Compile the whole model once, before the loop: `model.compile()`, or `model = torch.compile(model)` before it is
    passed to `DistributedDataParallel`. Measure some hundred steps with and without, after warm-up, and keep the
    faster form.

    Fix safety

    No fix: keys of the state dict may change, and the gain must be measured.

    Not reported

    - Programs that compile anything, under any option.
    - Agents whose networks have no convolutions.
    - Epochs of a single step, optimization of a few tensors, copies of the model made in each iteration, single
      layers.
    - Double backward.

    Known limitations

    The source does not prove a gain, so this rule is off by default. Tiny models, data-dependent control flow,
    changing shapes, hooks that come and go, unsupported devices, short runs and debugging gain nothing. If memory is
    short, `mode="reduce-overhead"` does not help: CUDA graphs keep more memory.

    Measured

    Compiled against eager: six MLP blocks 1.2 times faster, a pointwise chain on a million numbers 3.2 times faster,
    on ten thousand numbers 1.3 times slower, a single `nn.Linear(32)` 4.6 times slower (CPU, torch 2.13).

    References

    - `torch.compile`: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
    """

    code, name = "TPL405", "uncompiled-model"
    tier = Tier.EXTRA
    impact = Impact.MEDIUM
    confidence = Confidence.MEDIUM
    listens = (Loops(*BACKWARD),)
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if ctx.program.whole.compiles or not is_training_loop(node, ctx) or _only_steps(node, ctx):
            return
        if steps_no_model(node, ctx) or trains_one_layer(node, ctx):
            return
        if _is_full_batch(node, ctx) or (is_about_agents(node, ctx) and not ctx.mentions("Conv1d", "Conv2d", "Conv3d")):
            return
        yield self.finding(
            node,
            ctx,
            "This loop trains a model that is never compiled. `torch.compile` may make its steps faster.",
            advice="Call `model.compile()` before the loop, and time some hundred steps with and without it.",
        )


def _only_steps(node: ast.AST, ctx: Context) -> bool:
    """Whether a loop does nothing but steps of optimizers: `for name in names: self.optims[name].step()`. A `step` of
    the project's own may do all there is.
    """
    body = [part for statement in getattr(node, "body", []) for part in walk(statement)]
    calls = [part for part in body if isinstance(part, ast.Call)]
    return bool(calls) and all(
        callee_name(call) in _OF_OPTIMIZERS and ctx.project_target(call.func) is None for call in calls
    )


def _is_full_batch(node: ast.AST, ctx: Context) -> bool:
    """Whether each epoch is a single step on all data there is: a few hundred of them do not pay for compiling."""
    if not isinstance(node, ast.For) or not COUNTS_EPOCHS.search(ctx.text(node.iter)):
        return False
    return not any(
        isinstance(part, (ast.For, ast.While)) or (isinstance(part, ast.Call) and callee_name(part) == "next")
        for statement in node.body
        for part in walk(statement)
    )
