"""TPL508: statistics of every parameter, taken one by one in Python on every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Context, Finding, Heat, Impact, Nodes, Rule, callee_name
from perflint.api.parameters import (
    calls_on,
    changes_parameters,
    comes_to_nothing,
    derived_names,
    is_of_values_only,
    is_penalty,
    walk_of_parameters,
)

from ._shared.switches import is_behind_a_switch

#: One of these stands in every such loop.
_MENTIONED = (
    *"parameters named_parameters params trainable_params model_params param_list trainable_parameters".split(),
    "param_groups",
)
_STATISTICS = frozenset(
    "norm mean std var sum abs max min amax amin median pow square isnan isinf isfinite any all item tolist histc "
    "vector_norm clip_grad_norm_ quantile".split()
)
_FOR_ALL = (
    "Use `torch.nn.utils.get_total_norm` or `torch._foreach_norm` on the list of gradients, and read the result "
    "every N steps."
)
_LEAVE_OUT = (
    "The sum is multiplied by zero: leave it out. Freeze parameters that take no part in a step, or pass "
    "`find_unused_parameters=True` to DistributedDataParallel."
)
_READS = frozenset("item tolist cpu numpy float".split())


class ParamsWalkPerStep(Rule):
    """A Python loop computes statistics of each parameter on every step.

    What it does

    Reports loops over all parameters on the hot path that compute norms, means or similar of each.

    Why is this slow?

    Each operation on each parameter launches a kernel, hundreds of them for a model of common size, with tiny work
    each. On a GPU each `.item()` synchronizes, once per parameter.

    What to do

    For the norm of all gradients use the result of `torch.nn.utils.clip_grad_norm_`, or
    `torch.nn.utils.get_total_norm(gradients)`. For each parameter use `torch._foreach_norm(gradients)`, one launch
    for all. Stack the results and read them once. Compute statistics every N steps only.

    Fix safety

    No fix: the results have another shape.

    Not reported

    - Statistics under an every-N guard, or under an option that is off by default.
    - Penalties that are part of the loss and need a gradient, unless they are multiplied by a literal zero.
    - Updates of parameters (per-parameter-update reports those), and averaging over processes.
    - Setting `requires_grad`, and counting.

    Measured

    A gradient norm with `.item()` per tensor takes 1.7 times as long as `torch.nn.utils.get_total_norm` on a CPU
    (torch 2.13), where nothing synchronizes.

    References

    - `torch.nn.utils.get_total_norm`:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.get_total_norm.html
    - `torch.nn.utils.clip_grad_norm_`:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html
    """

    code, name = "TPL508", "params-walk-per-step"
    impact = Impact.MEDIUM
    listens = (Nodes(ast.For, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp, mentioning=_MENTIONED),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        found = walk_of_parameters(node)
        if found is None or _is_for_others(ctx):
            return
        target, parts = found
        inner = parts[0]
        is_seldom = ctx.heat(inner) < Heat.STEP or ctx.guards(inner)
        if is_seldom or _is_inside_walk(node, ctx) or is_behind_a_switch(node, ctx):
            return
        names = derived_names(target, parts)
        taken = [call for part in parts for call in calls_on(part, names)]
        if not any(callee_name(call) in _STATISTICS for call in taken) or changes_parameters(parts):
            return
        reads = [call for call in taken if callee_name(call) in _READS]
        nothing = comes_to_nothing(node, parts, ctx)
        if not (reads or nothing) and (not is_of_values_only(parts, names, ctx) or is_penalty(node, parts, ctx)):
            return
        costs = (
            f"synchronizes once per parameter (`{ctx.text(reads[0])}`)"
            if reads
            else "launches a few small kernels per parameter"
        )
        yield self.finding(
            node,
            ctx,
            f"The loop over `{_walked(node, ctx)}` {ctx.heat(inner).phrase} and {costs}.",
            advice=_LEAVE_OUT if nothing else _FOR_ALL,
            impact=Impact.HIGH if reads else None,
        )


def _is_for_others(ctx: Context) -> bool:
    """Whether the file is written for another library than torch."""
    return not ctx.mentions("torch") and ctx.mentions("mxnet", "tensorflow", "jax", "paddle", "mindspore")


def _walked(node: ast.AST, ctx: Context) -> str:
    iterable = node.iter if isinstance(node, ast.For) else node.generators[0].iter  # type: ignore[attr-defined]
    return ctx.text(iterable)


def _is_inside_walk(node: ast.AST, ctx: Context) -> bool:
    """Whether another walk around this one is reported already."""
    return any(walk_of_parameters(outer) is not None for outer in ctx.tree.ancestors(node))
