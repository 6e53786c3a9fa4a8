"""TPL803: `find_unused_parameters=True` for models that use all their parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Impact, Rule, Tier, callee_name, is_constant
from perflint.api.loading import option_of
from perflint.api.processes import hands_to_others, leaves_out_parts

_WRAPPERS = (
    "DistributedDataParallel",
    "LightningDistributedDataParallel",
    "DDP",
    "DDPStrategy",
    "DDPPlugin",
    "DistributedDataParallelKwargs",
    "DistributedDataParallelConfig",
)
_CONFIGURED = ("Trainer", "Fabric", "TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig")


class FindUnusedParameters(Rule):
    """`find_unused_parameters=True` traverses the autograd graph on every step.

    What it does

    Reports `find_unused_parameters=True` in `DistributedDataParallel` and in strategies that create it.

    Why is this slow?

    After each forward pass DDP traverses the whole autograd graph to find parameters that took no part, before the
    backward pass may start. The time grows with the graph.

    What to do

    Remove it if every parameter takes part in every step. If the same parameters are always unused, freeze them
    (`requires_grad_(False)`) before wrapping, or pass `static_graph=True`.

    Fix safety

    No fix: whether every parameter is used must be tested.

    Not reported

    - Files whose names show models that skip parameters: mixtures of experts, adversarial training, several tasks,
      layer dropping. Without the flag DDP raises "Expected to have finished reduction" there.
    - `static_graph=True`, and values that come from a configuration.
    - Models that accelerate passes to DeepSpeed or FSDP.

    Known limitations

    perflint cannot see which parameters a step uses, so this rule is off by default.

    Measured

    A small step took 1.09 times as long; with `static_graph=True` 0.93 of the plain time (CPU, gloo, two processes).

    References

    - `torch.nn.parallel.DistributedDataParallel`:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
    - Distributed data parallel, internal design: https://docs.pytorch.org/docs/stable/notes/ddp.html
    """

    code, name = "TPL803", "find-unused-parameters"
    tier = Tier.EXTRA
    impact = Impact.LOW
    confidence = Confidence.MEDIUM
    listens = (Calls(*_WRAPPERS, *_CONFIGURED),)
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not _switches_on(node, ctx) or is_constant(option_of(node, "static_graph", ctx), value=True):
            return
        if leaves_out_parts(node, ctx) or hands_to_others(node, ctx):
            return
        yield self.finding(
            node,
            ctx,
            "`find_unused_parameters=True` makes DDP traverse the whole autograd graph after every forward pass.",
            advice=(
                "Remove it unless a step really skips parameters. Freeze parameters that are never used before "
                "wrapping."
            ),
        )


def _switches_on(node: ast.Call, ctx: Context) -> bool:
    if callee_name(node) in _WRAPPERS:
        return is_constant(option_of(node, "find_unused_parameters", ctx), value=True)
    strategy = option_of(node, "strategy", ctx)
    return is_constant(option_of(node, "ddp_find_unused_parameters", ctx), value=True) or (
        isinstance(strategy, ast.Constant)
        and isinstance(strategy.value, str)
        and strategy.value.endswith("find_unused_parameters_true")
    )
