"""TPL704: an optimizer that could run fused."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Confidence,
    Context,
    Finding,
    Fix,
    Impact,
    Rule,
    argument,
    is_constant,
    last,
    modules,
    versions,
)
from perflint.api.gradients import cannot_be_fused, is_never_stepped, is_over_few_tensors
from perflint.api.loading import hides_options, option_of


class UnfusedOptimizer(Rule):
    """An optimizer with a fused implementation is created without `fused=True`.

    What it does

    Reports `Adam`, `AdamW` and `Adagrad` of torch without `fused=True`, and `SGD` with `foreach=False`.

    Why is this slow?

    On a GPU the default is `foreach`: one launch per operation over all parameters, each of which reads and writes them
    all. The fused implementation does all operations in one launch. On a CPU neither is the default.

    What to do

    Write `torch.optim.AdamW(parameters, lr=lr, fused=True)`. Do not combine it with `foreach=True`, which raises.

    Fix safety

    Unsafe: a run that resumes from a checkpoint of an optimizer that was not fused crashes under a `GradScaler`
    ("Expected grad_scale and found_inf to be None"). Same bits on a CPU in 20 steps, same to rounding elsewhere.

    Not reported

    - Calls that pass `fused`, `foreach`, `capturable` or `differentiable`.
    - Complex parameters, tensor subclasses and sparse gradients (of `SGD`, `Adagrad`), for which it raises.
    - Projects that support a torch without it (Adam and AdamW since 2.0, SGD since 2.3, Adagrad and CPU since 2.4).
    - SGD and Adagrad over parameters sharded by `fully_shard`, which have no fused kernel.
    - Lightning with `precision=16` and `gradient_clip_val`, which rejects fused optimizers.
    - `SGD` by the default way, which passes over the parameters four times at most: a fraction of a millisecond in a
      step of tens or hundreds.
    - Optimizers of a few tensors, or of a single layer; programs that train nothing, and optimizers that take no step.

    Known limitations

    The gain on a GPU is small: the impact is low. It is largest for many small parameters and short steps.

    Measured

    End to end 2.6 percent on an 8B Llama (torchtitan, measured by its authors). On a CPU, AdamW over 300 parameters
    of 1,000 numbers took 0.30 of the time, over 300 of 30,000 numbers 0.35, over 12 of a million 0.34 (torch 2.13).

    References

    - `torch.optim.AdamW`: https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html
    - torch.optim, algorithms: https://docs.pytorch.org/docs/stable/optim.html
    """

    code, name = "TPL704", "unfused-optimizer"
    impact = Impact.LOW
    confidence = Confidence.MEDIUM
    lasting = True
    widespread = True
    listens = (Calls(*(last(name) for name in sorted(modules.FUSABLE_OPTIMIZERS))),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not ctx.program.whole.has_training or not ctx.once(_gains, node):
            return
        slower = _is_one_by_one(node, ctx)
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node.func)}` is not fused: a step passes over all parameters once for each of its operations, "
            "not once for all of them.",
            advice="Pass `fused=True` instead of `foreach=False`." if slower else "Pass `fused=True`.",
            fix=Fix(
                "Use the fused implementation",
                Applicability.UNSAFE,
                (ctx.edit.set_keyword(node, "fused", "True"),),
                reason="a run that resumes from a checkpoint of an unfused optimizer would crash under a GradScaler",
                numerics="same to rounding",
            ),
            block=ctx.once(_first_of, ctx.tree.function_of(node) or ctx.tree.module),
        )


def _gains(node: ast.Call, ctx: Context) -> bool:
    """Whether an optimizer has a fused way, and neither has chosen another one nor has nothing to gain by it."""
    target = ctx.target(node.func)
    if target not in modules.FUSABLE_OPTIMIZERS or hides_options(node, ctx) or not node.args + node.keywords:
        return False
    slower = _is_one_by_one(node, ctx)
    chosen = modules.IMPLEMENTATION_KEYWORDS - ({"foreach"} if slower else set())
    if not _is_there(f"fused {last(target)}", ctx) or any(option_of(node, name, ctx) is not None for name in chosen):
        return False
    if last(target) == "SGD" and not slower:
        return False  # four launches at most, each of which does next to nothing for a parameter
    gains_nothing = is_over_few_tensors(argument(node, 0, "params"), ctx) or is_never_stepped(node, ctx)
    return not gains_nothing and not cannot_be_fused(last(target), ctx)


def _first_of(around: ast.AST, ctx: Context) -> ast.Call | None:
    """The optimizers that one function makes are one decision, told at the first of them."""
    calls = (part for part in ctx.walk(around) if isinstance(part, ast.Call) and ctx.once(_gains, part))
    return min(calls, key=lambda call: (call.lineno, call.col_offset), default=None)


def _is_one_by_one(node: ast.Call, ctx: Context) -> bool:
    return is_constant(option_of(node, "foreach", ctx), False)  # noqa: FBT003


def _is_there(fact: str, ctx: Context) -> bool:
    return ctx.torch_version is None or versions.has(fact, ctx.torch_version)
