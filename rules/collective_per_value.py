"""TPL805: one collective for each of several small tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Context, Finding, Heat, Impact, Rule, callee_name, walk
from perflint.api.processes import COLLECTIVES, is_collective, loop_over_values, row_of_collectives

#: Calls of one block from which on they are reported.
_SEVERAL = 3
_COALESCED = "_coalescing_manager"
#: What puts an item into a buffer, and what tells how large it is.
_COLLECTS = frozenset({"append", "extend", "add", "copy_"})
_SIZES = frozenset({"numel", "nelement", "element_size", "nbytes", "size", "itemsize"})


class CollectivePerValue(Rule):
    """Several small collectives run on every step where one over a joined tensor would do.

    What it does

    Reports a collective inside a loop over values or parameters that runs on every step, and three or more of them in
    a row.

    Why is this slow?

    A collective over a few numbers costs its latency, 10 to 50 us within a machine and more between machines, whatever
    it carries, and each one makes all processes meet. Twenty metrics cost twenty latencies; gradients that are reduced
    one by one also leave the network's bandwidth unused and do not overlap with the backward pass.

    What to do

    Numbers: `packed = torch.stack(list(values))`, one `all_reduce(packed)`, then `packed.unbind()`. Gradients: use
    `DistributedDataParallel`, which reduces buckets during the backward pass, or flatten them into one tensor.

    Fix safety

    No fix: dtypes and devices of the joined values have to agree.

    Not reported

    - Loops over devices, stages, or one collective per iteration of the training loop itself.
    - Calls in a coalescing context manager, and code that runs per epoch or behind an every-N guard.

    Known limitations

    - The latency is the one that NCCL's documentation and tests report; it is not measured here.

    References

    - `torch.distributed`, collective functions: https://docs.pytorch.org/docs/stable/distributed.html
    - `DistributedDataParallel`:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
    """

    code, name = "TPL805", "collective-per-value"
    impact = Impact.MEDIUM
    listens = (Calls(*COLLECTIVES),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not is_collective(node, ctx) or ctx.role(node) == "eval" or _is_coalesced(node, ctx):
            return
        name = callee_name(node)
        loop = loop_over_values(node, ctx)
        if loop is not None:
            over = ctx.text(loop.iter)
            is_gradient = bool(node.args) and ctx.text(node.args[0]).endswith((".grad", ".grad.data"))
            yield self.finding(
                node,
                ctx,
                f"`{name}` runs once for each item of `{over}`, and {ctx.heat(node).phrase}: each pays its latency.",
                advice="Let `DistributedDataParallel` reduce gradients in buckets, or flatten them into one tensor."
                if is_gradient
                else f"Stack the values and call `{name}` once.",
                impact=Impact.HIGH if is_gradient else None,
            )
            return
        row = row_of_collectives(node, ctx)
        if len(row) >= _SEVERAL and row[0] is node:
            yield self.finding(
                node,
                ctx,
                f"{len(row)} calls of `{name}` in a row {ctx.heat(node).phrase}: each pays its latency.",
                advice=f"Stack the values and call `{name}` once.",
                related=tuple(ctx.hop(other, "the same again") for other in row[1:]),
            )


def _is_coalesced(node: ast.Call, ctx: Context) -> bool:
    return _is_too_large(node, ctx) or any(
        _COALESCED in ctx.text(item.context_expr)
        for outer in ctx.tree.ancestors(node)
        if isinstance(outer, ast.With)
        for item in outer.items
    )


def _is_too_large(node: ast.Call, ctx: Context) -> bool:
    """Whether a test of the item's size lets it be sent alone, and another outcome puts it into a buffer."""
    loop = next(iter(ctx.loops(node)), None)
    sizes = {id(test) for test, _ in ctx.conditions(node) if isinstance(test, ast.Compare) and _is_of_size(test, ctx)}
    if loop is None or not sizes:
        return False
    collecting = (part for part in ctx.walk(loop) if isinstance(part, ast.Call) and callee_name(part) in _COLLECTS)
    return any(id(test) in sizes for part in collecting for test, _ in ctx.conditions(part))


def _is_of_size(test: ast.Compare, ctx: Context) -> bool:
    """`t.numel() * t.element_size() > limit`, or of a name for it."""
    origins = [item for side in (test.left, *test.comparators) for item in ctx.inference.origins(side)]
    parts = (part for item in origins for part in walk(item))
    return any(isinstance(part, ast.Attribute) and part.attr in _SIZES for part in parts)
