"""TPL803: `find_unused_parameters=True` for models that use all their parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Calls,
    Confidence,
    Context,
    Finding,
    Impact,
    Rule,
    Tier,
    callee_name,
    is_constant,
    walk,
)
from perflint.api import keyword as keyword_of
from perflint.api.names import RUNS_IN_PARTS

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
#: What accelerate is told for DDP, and what it hands the model to instead.
_OF_ACCELERATE = "DistributedDataParallelKwargs"
_NO_DDP = ("deepspeed_plugin", "fsdp_plugin")


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
        if not _switches_on(node) or is_constant(keyword_of(node, "static_graph"), value=True):
            return
        if _is_conditional(node, ctx) or _is_taken_by_others(node, ctx):
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


def _is_taken_by_others(node: ast.Call, ctx: Context) -> bool:
    """Whether accelerate is told to hand the model to DeepSpeed or FSDP: nothing goes to DDP then."""
    return callee_name(node) == _OF_ACCELERATE and any(
        isinstance(part, ast.Call)
        and callee_name(part) == "Accelerator"
        and any(item.arg in _NO_DDP and not is_constant(item.value, None) for item in part.keywords)
        for part in walk(ctx.tree.module)
    )


def _switches_on(node: ast.Call) -> bool:
    if callee_name(node) in _WRAPPERS:
        return is_constant(keyword_of(node, "find_unused_parameters"), value=True)
    strategy = keyword_of(node, "strategy")
    return is_constant(keyword_of(node, "ddp_find_unused_parameters"), value=True) or (
        isinstance(strategy, ast.Constant)
        and isinstance(strategy.value, str)
        and strategy.value.endswith("find_unused_parameters_true")
    )


def _is_conditional(node: ast.Call, ctx: Context) -> bool:
    """Whether the file, or that of the class that is wrapped, speaks of parts that a step leaves out."""
    homes = {ctx.path, *(ctx.kind(item).path for item in node.args[:1])} - {""}
    summaries = [ctx.program.summaries[path] for path in sorted(homes)]
    words = (words for summary in summaries for words in summary.words_by_statement().values())
    return any(RUNS_IN_PARTS.search(name) for found in words for name in found)
