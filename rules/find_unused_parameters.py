"""TPL803: `find_unused_parameters=True` for models that use all their parameters."""

from __future__ import annotations

import ast
import re
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
    pattern,
    walk,
)
from perflint.api import keyword as keyword_of

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
#: What programs with branches that a step may leave out are made of.
_CONDITIONAL = pattern(
    r"discriminator|(?:^|_)gan(?:_|$)|netD|(?:^|_)moe(?:_|$)|experts?(?:_|$)|stochastic_depth|layer_?drop|multi_?task",
    re.IGNORECASE,
)


class FindUnusedParameters(Rule):
    """`find_unused_parameters=True` walks the autograd graph on every step.

    Why it is slow
    After each forward DDP goes through the whole graph to find parameters that got no part in it, before the backward
    may begin. A small step took 1.09 times as long, and the walk grows with the graph; `static_graph=True` took 0.93
    of the plain time (measured on a CPU, gloo, two processes).

    What to write instead
    Leave it out where every parameter takes part in every step. Where the same ones are left out each time, freeze
    them (`requires_grad_(False)`) before wrapping, or pass `static_graph=True`.

    When to leave it
    Models whose steps really leave parameters out: mixtures of experts, adversarial training, several tasks, layer
    dropping. Without the flag DDP raises "Expected to have finished reduction" on the second step there. perflint
    cannot see which parameters a step uses, which is why this rule is not on by default; it is silent where names in
    the file speak of such models, with `static_graph=True`, where the value comes from a configuration, and where
    accelerate hands the model to DeepSpeed or FSDP.

    Fix safety
    There is no automatic fix: whether every parameter is used has to be tried.
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
        if _is_conditional(ctx) or _is_taken_by_others(node, ctx):
            return
        yield self.finding(
            node,
            ctx,
            "DDP walks the whole autograd graph after every forward to look for parameters that the step did not use.",
            advice="Leave it out unless a step really skips parameters; for ones that are never used, freeze them "
            "before wrapping.",
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


def _is_conditional(ctx: Context) -> bool:
    return any(_CONDITIONAL.search(name) for words in ctx.summary.words_by_statement().values() for name in words)
