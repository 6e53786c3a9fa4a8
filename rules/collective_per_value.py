"""TPL805: one collective for each of several small tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Context, Finding, Heat, Impact, Rule, callee_name, is_constant, keyword, walk

_COLLECTIVES = ("all_reduce", "reduce", "all_gather", "broadcast")
_TARGETS = tuple(f"torch.distributed.{name}" for name in _COLLECTIVES)
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
    listens = (Calls(*_COLLECTIVES),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not _is_collective(node, ctx) or ctx.role(node) == "eval" or _is_coalesced(node, ctx):
            return
        name = callee_name(node)
        loop = _loop_over_values(node, ctx)
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
        row = _row(node, ctx)
        if len(row) >= _SEVERAL and row[0] is node:
            yield self.finding(
                node,
                ctx,
                f"{len(row)} calls of `{name}` in a row {ctx.heat(node).phrase}: each pays its latency.",
                advice=f"Stack the values and call `{name}` once.",
                related=tuple(ctx.hop(other, "the same again") for other in row[1:]),
            )


def _is_collective(node: ast.AST, ctx: Context) -> bool:
    if not isinstance(node, ast.Call) or not ctx.is_call_of(node, *_TARGETS):
        return False
    later = keyword(node, "async_op")
    return later is None or is_constant(later, value=False)


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


def _loop_over_values(node: ast.Call, ctx: Context) -> ast.For | None:
    """The innermost loop, where what is exchanged is, or is kept in, an item that the loop takes from a container."""
    loops = ctx.loops(node)
    if not loops or not isinstance(loops[0], ast.For) or ctx.is_root_loop(loops[0]) or not node.args:
        return None
    taken = {part.id for part in ast.walk(loops[0].target) if isinstance(part, ast.Name)}
    sent = {part.id for part in ast.walk(node.args[0]) if isinstance(part, ast.Name)}
    is_range = isinstance(loops[0].iter, ast.Call) and callee_name(loops[0].iter) == "range"
    return loops[0] if taken & sent and not is_range else None


def _row(node: ast.Call, ctx: Context) -> list[ast.Call]:
    """The calls of the same collective that are statements of one block, with nothing but assignments between them."""
    statement = ctx.tree.statement_of(node)
    block = next((items for items in _blocks(ctx.tree.parent(statement)) if statement in items), [])
    rows: list[list[ast.Call]] = [[]]
    for item in block:
        call = item.value if isinstance(item, ast.Expr) else None
        if isinstance(call, ast.Call) and _is_collective(call, ctx) and callee_name(call) == callee_name(node):
            rows[-1].append(call)
        elif not isinstance(item, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            rows.append([])
    return next((row for row in rows if node in row), [])


def _blocks(outer: ast.AST | None) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(outer, name, None)
        if isinstance(block, list):
            yield block
