"""TPL605: parameters updated one by one in Python on every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Calls,
    Context,
    Finding,
    Heat,
    Impact,
    Loops,
    Nodes,
    Rule,
    callee_name,
)
from perflint.api.loops import launches_of_step, names_in
from perflint.api.names import ADAPTS
from perflint.api.parameters import (
    Update,
    is_walk,
    new_values_of_parameters,
    treats_alike,
    updates_of_each,
    walks_few,
    walks_parameters,
)
from perflint.api.phases import is_trial_run

from ._fixes.foreach_advice import advice_for
from ._fixes.foreach_update import on_lists

#: Operations for each parameter of an optimizer's own step: of fewer there is little to gain.
_SEVERAL = 4
#: Tensors that are spread over processes, which `torch._foreach_*` does not take everywhere.
_SHARDED = (
    "FullyShardedDataParallel",
    "FSDP",
    "fully_shard",
    "DTensor",
    "summon_full_params",
    "to_local",
    "full_tensor",
    "GatheredParameters",
)


class PerParameterUpdate(Rule):
    """A Python loop updates one parameter at a time on every step: a moving average, clipping, or a manual step.

    What it does

    Reports loops on the hot path that update all parameters one by one, lists and dicts of new values for all of them
    (`[w - rate * g for w, g in zip(weights, gradients)]`), and the `step` of an optimizer of your own that does the
    same arithmetic on each.

    Why is this slow?

    Each operation on each parameter launches a kernel: two operations for 300 parameters are 600 launches, where
    `torch._foreach_*` needs a handful. On a GPU, where the launch is most of the cost of a small update, the loop
    loses more than on a CPU.

    What to do

    Moving averages: `torch._foreach_lerp_(averages, values, 1 - decay)` on two lists, or
    `torch.optim.swa_utils.AveragedModel` with `get_ema_multi_avg_fn`, whose state dict has other keys. Clipping:
    `torch.nn.utils.clip_grad_norm_` or `clip_grad_value_`. Scaling: `torch._foreach_mul_(gradients, factor)`. A
    manual step: `torch.optim.SGD`. An optimizer of your own: `torch._foreach_*` on lists of parameters, gradients and
    states, as the optimizers of torch do.

    Fix safety

    Unsafe: `torch._foreach_*` is not a public API, and raises for an empty list, integer buffers and mixed types.
    `_foreach_mul_` and `_foreach_add_` give the same bits as `mul_` and `add_`; `lerp_` differs from them in the last
    bit. A mixture that is copied (`copy_(a * x + b * y)`) keeps its bits, and holds a second copy for a moment.

    Not reported

    - Loops that are not on the hot path, and loops beside a `_foreach_` branch.
    - Updates that differ per parameter: rates by name, statistics of each, noise.
    - An optimizer's own step of fewer than four operations, or with norms, products of matrices or views of a shape.
    - Sharded parameters, plain copies, communication, and steps that adapt a model to tasks.
    - `module._parameters`, which holds at most a few.

    Known limitations

    For a handful of parameters there is no gain.

    Measured

    On one CPU thread with torch 2.13, a moving average of 300 parameters of 1,000 numbers took 0.57 of the loop's
    time with `_foreach_mul_` and `_foreach_add_`, 0.42 with `lerp_` in the loop, and 0.19 with `_foreach_lerp_`. 300
    parameters of 30,000 numbers: 0.71 to 0.79. 12 parameters of a million: 0.75. Building the new value first
    (`copy_(d * x + (1 - d) * y)`) takes twice as long as in place.

    References

    - torch.optim, weight averaging: https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema
    - `torch.nn.utils.clip_grad_norm_`:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html
    """

    code, name = "TPL605", "per-parameter-update"
    impact = Impact.MEDIUM
    listens = (Loops(), Nodes(ast.ListComp, ast.DictComp), Calls("list", "tuple", "dict", "OrderedDict"))
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if not isinstance(node, ast.For):
            yield from self._made_anew(node, ctx)
            return
        if (launches := launches_of_step(node, ctx)) >= _SEVERAL and ctx.heat(node.body[0]) >= Heat.STEP:
            yield self._own_step(node, launches, ctx)
            return
        if not walks_parameters(node.iter, ctx):
            return
        if ctx.heat(node.body[0]) < Heat.STEP or _has_another_way(node, ctx) or walks_few(node.iter, ctx):
            return
        if is_trial_run(node, ctx) or _adapts_to_tasks(node, ctx):
            return
        updates = updates_of_each(node)
        if not updates or not treats_alike(node):
            return
        yield self.finding(
            node,
            ctx,
            f"The loop over `{ctx.text(node.iter)}` {ctx.heat(node.body[0]).phrase} and launches "
            f"{_count(updates)} for each parameter.",
            advice=advice_for(node, updates, ctx),
            fix=on_lists(node, ctx),
        )

    def _made_anew(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        """New values for all parameters in a list, which leave the old ones as they are."""
        made = new_values_of_parameters(node, ctx)
        if made is None or ctx.heat(node) < Heat.STEP or _has_another_way(node, ctx) or walks_few(made.over, ctx):
            return
        if not is_trial_run(node, ctx) and not _adapts_to_tasks(node, ctx):
            yield self.finding(
                node,
                ctx,
                f"The list of new values for `{ctx.text(made.over)}` {ctx.heat(node).phrase} and launches "
                f"{made.launches} operations for each parameter.",
                advice="Use `torch._foreach_mul` and `torch._foreach_add` on the lists; autograd differentiates both.",
            )

    def _own_step(self, node: ast.For, launches: int, ctx: Context) -> Finding:
        """The step of an optimizer that the project has written itself."""
        return self.finding(
            node,
            ctx,
            f"The loop over `{ctx.text(node.iter)}` {ctx.heat(node.body[0]).phrase} and launches {launches} or more "
            "operations for each parameter.",
            advice="Collect parameters, gradients and states in lists and use `torch._foreach_*` on them, as "
            "`torch.optim` does; or use its optimizer, where it has this one.",
        )


def _adapts_to_tasks(node: ast.AST, ctx: Context) -> bool:
    """Whether the step around `node` adapts the model to a task: it runs tens of forwards and backwards, mostly of a
    small network.
    """
    return any(
        isinstance(part, ast.Call) and ADAPTS.search(callee_name(part))
        for loop in ctx.loops(node)[:1]
        for part in ctx.walk(loop)
    )


def _has_another_way(node: ast.AST, ctx: Context) -> bool:
    """Whether it is an optimizer's own step, stands beside a `_foreach_` way, or walks over sharded tensors."""
    if ctx.mentions(*_SHARDED):
        return True
    function = ctx.tree.function_of(node)
    if function is not None and any(name.startswith("_foreach") for name in names_in(function)):
        return True
    if any(isinstance(outer, ast.For) and is_walk(outer.iter) for outer in ctx.loops(node)):
        return True
    cls = ctx.tree.class_of(node)
    return cls is not None and any("Optim" in name for base in cls.bases for name in names_in(base))


def _count(updates: list[Update]) -> str:
    return "an update" if len(updates) == 1 else f"{len(updates)} updates"
