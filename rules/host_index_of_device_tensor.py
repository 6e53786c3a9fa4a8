"""TPL114: device tensors indexed with tensors of the host."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Claims, Context, Finding, Heat, Impact, Nodes, Rule, Tag, is_name
from perflint.api.transfers import counts_up_by_one, index_copied_at, is_read_on_host
from perflint.api.waits import first_of_block, impact_of_copy

from ._fixes.index_fixes import index_there


class HostIndexOfDeviceTensor(Rule):
    """Indexing a device tensor with a host index copies the index to the device and blocks on that copy.

    What it does

    Reports `data[index]` on the hot path where `data` is on the device and `index` is on the host: a tensor, a numpy
    array or a list of numbers.

    Why is this slow?

    Every use copies the index from pageable memory, so the host blocks until all queued GPU work has finished. Of a
    mask the host counts the places first, and copies these.

    What to do

    Create the index on the device (`torch.randperm(n, device=data.device)`), or move it once, before the loop. Where
    the index counts up by one, take a slice. Where the host reads it as well, keep it there, and a copy on the device.
    A mask on the device fills in a number without a wait; instead of selecting by it, compute with all entries and
    take them by `torch.where`.

    Fix safety

    Safe for `data[torch.arange(n)]` of whole numbers, which is made on the device instead: same bits. Unsafe for
    `torch.randperm`, which draws other numbers there; for a list of numbers in equal steps that becomes a slice,
    because a slice past the end is shorter where an index raises; and for a list that a module keeps as a buffer.

    Not reported

    - Indices that are not copied: numbers, slices and 0-d tensors.
    - Data on the host.
    - Boolean masks on the device: what they select has a size that depends on the values (`data-dependent-shape`).

    References

    - Performance tuning guide, avoid unnecessary CPU-GPU synchronization:
      https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
    - `torch.randperm`: https://docs.pytorch.org/docs/stable/generated/torch.randperm.html
    """

    code, name = "TPL114", "host-index-of-device-tensor"
    minor_beside_reads = True
    impact = Impact.MEDIUM
    listens = (Nodes(ast.Subscript),)
    at_least = Heat.STEP
    needs_accelerator = True
    claims = Claims("to-device")

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Subscript)
        copy = index_copied_at(node, ctx)
        if copy is None or ctx.role(node) == "data":
            return
        what = "mask" if ctx.kind(copy.data).is_mask else "index"
        yield self.finding(
            node,
            ctx,
            f"Indexing `{ctx.text(node.value)}` with the host {what} `{ctx.text(copy.data)}` {ctx.heat(node).phrase}: "
            f"the copy of the {what} synchronizes.",
            advice=_advice(node, copy.data, ctx),
            fix=index_there(node, copy.data, ctx),
            confidence=copy.certainty,
            impact=min(self.impact, impact_of_copy(node, ctx)),
            block=_first_use(copy.data, ctx) or first_of_block(node, ctx),
        )


def _advice(node: ast.Subscript, index: ast.expr, ctx: Context) -> str:
    if ctx.kind(index).is_mask:
        given = getattr(ctx.tree.parent(node), "value", None) if isinstance(node.ctx, ast.Store) else None
        if given is not None and ctx.kind(given).tag is Tag.NUMBER:
            return f"Make `{ctx.text(index)}` on the device, where a number is filled in without counting."
        return f"Compute all of it and take `torch.where({ctx.text(index)}, ...)`, with the mask made on the device."
    kept = index.value if isinstance(index, ast.Subscript) else index
    if isinstance(kept, ast.Attribute) and is_name(kept.value, "self") and ctx.kind(kept.value).tag is Tag.MODULE:
        return f"Register `{ctx.text(kept)}` as a buffer of index tensors: it moves to the device with the module."
    if counts_up_by_one(index, ctx) and _is_alone(node, index, ctx):
        return f"`{ctx.text(index)}` counts up by one: select with a slice, which copies nothing."
    if is_read_on_host(index, ctx):
        return f"Select with a copy of `{ctx.text(index)}` on the device, made once: the host reads it as well."
    return f"Create `{ctx.text(index)}` on the device, or move it there once, before the loop."


def _is_alone(node: ast.Subscript, index: ast.expr, ctx: Context) -> bool:
    """Whether no other index of places stands beside: two such are paired, which a slice is not."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
    others = [part for part in parts if part is not index and not isinstance(part, (ast.Slice, ast.Constant))]
    return all(ctx.kind(part).tag is Tag.NUMBER for part in others)


def _first_use(index: ast.expr, ctx: Context) -> ast.Subscript | None:
    """Where the same value of the host indexes first: whoever creates it on the device mends all of its uses."""
    definitions = ctx.inference.flow.definitions(index) if isinstance(index, ast.Name) else ()
    for use in ctx.inference.flow.uses_of(definitions[0]) if len(definitions) == 1 else ():
        outer = ctx.tree.parent(use)
        place = ctx.tree.parent(outer) if isinstance(outer, ast.Tuple) else outer
        if isinstance(place, ast.Subscript) and (copy := index_copied_at(place, ctx)) is not None and copy.data is use:
            return place
    return None
