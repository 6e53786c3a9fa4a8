"""TPL114: device tensors indexed with tensors of the host."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Claims, Context, Finding, Heat, Impact, Nodes, Place, Rule, Tag, callee_name, pattern

from ._shared.device_queue import first_of_block, impact_at
from ._shared.waits import kind_on_device

_BOOLEAN = pattern(r"\.bool\(|torch\.bool\b")
#: What may be an index of many places; numbers and slices are not.
_INDICES = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.ListComp)


class HostIndexOfDeviceTensor(Rule):
    """Indexing a device tensor with a host index copies the index to the device and blocks on that copy.

    What it does

    Reports `data[index]` on the hot path where `data` is on the device and `index` is on the host: a tensor, a numpy
    array or a list of numbers.

    Why is this slow?

    Every use copies the index from pageable memory, so the host blocks until all queued GPU work has finished.

    What to do

    Create the index on the device (`torch.randperm(n, device=data.device)`), or move it once, before the loop.

    Fix safety

    No fix: random indices on the device come from another generator and have other values.

    Not reported

    - Indices that are not copied: numbers, slices and 0-d tensors.
    - Data on the host.
    - Boolean masks: on the device they synchronize to compute the size of the result.

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
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        candidates = [part for part in parts if isinstance(part, _INDICES)]
        if not candidates or ctx.role(node) == "data":
            return
        data = ctx.kind(node.value)
        # Of what a loader gives, only a tensor is indexed with a tensor.
        if data.tag not in (Tag.TENSOR, Tag.BATCH) or not data.on_accelerator:
            return
        if kind_on_device(data.but(tag=Tag.TENSOR), node.value, ctx) is None:
            return
        index = next((part for part in candidates if _is_host_index(part, ctx)), None)
        if index is None or (data.tag is Tag.BATCH and ctx.kind(index).tag is not Tag.TENSOR):
            return
        yield self.finding(
            node,
            ctx,
            f"Indexing `{ctx.text(node.value)}` with the host index `{ctx.text(index)}` {ctx.heat(node).phrase}: "
            "the copy of the index synchronizes.",
            advice=f"Create `{ctx.text(index)}` on the device, or move it there once, before the loop.",
            confidence=min(data.certainty, ctx.kind(index).certainty),
            impact=min(self.impact, impact_at(node, ctx)),
            block=first_of_block(node, ctx),
        )


def _is_host_index(index: ast.expr, ctx: Context) -> bool:
    if isinstance(index, (ast.List, ast.ListComp)):
        return _holds_numbers(index, ctx)
    kind = ctx.kind(index)
    is_tensor = kind.tag is Tag.TENSOR and kind.place is Place.HOST and not kind.scalar
    if not is_tensor and kind.tag is not Tag.ARRAY:
        return False
    return not _is_element(index, ctx) and not _is_mask(index, ctx)


def _holds_numbers(index: ast.List | ast.ListComp, ctx: Context) -> bool:
    """`[0, 2]`, `[places[name] for name in names]`: a list of numbers, which becomes a tensor of the host first."""
    items = index.elts if isinstance(index, ast.List) else [index.elt]
    # `True` among them makes a mask of it.
    return bool(items) and all(ctx.kind(item).tag is Tag.NUMBER and not _is_bool(item) for item in items)


def _is_bool(node: ast.expr) -> bool:
    return isinstance(node, (ast.Compare, ast.BoolOp)) or (isinstance(node, ast.Constant) and type(node.value) is bool)


def _is_element(index: ast.expr, ctx: Context) -> bool:
    """`order[step]`: a tensor without a dimension, which is read as a number; rows of a matrix are not."""
    if not isinstance(index, ast.Subscript) or isinstance(index.slice, (ast.Slice, ast.Tuple)):
        return False
    if ctx.kind(index.slice).tag is not Tag.NUMBER:
        return False
    return not any(
        isinstance(origin, ast.Call) and callee_name(origin) in ("triu_indices", "tril_indices")
        for origin in ctx.inference.origins(index.value)
    )


def _is_mask(index: ast.expr, ctx: Context) -> bool:
    """A mask on the host is counted there: on the device the host would wait for the size of what it selects."""
    if "mask" in ctx.text(index).lower():
        return True
    return any(
        isinstance(origin, (ast.Compare, ast.UnaryOp)) or _BOOLEAN.search(ctx.text(origin)) is not None
        for origin in ctx.inference.origins(index)
    )
