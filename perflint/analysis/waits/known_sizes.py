"""Sizes that the host knows without a count on the device, and positions that are counted once for several uses."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.kind import Place, Tag
from perflint.analysis.waits.host_work import in_forward
from perflint.analysis.waits.reads import is_on_device
from perflint.ir.calls import argument, callee_name, is_constant, keyword
from perflint.syntax.named import one_target
from perflint.syntax.walk import walk
from perflint.torch_model import tensors

#: Methods and functions that select by positions, or write there.
_BY_INDEX = frozenset("index_select gather take index_add index_add_ index_copy index_copy_ index_fill_".split())


def selects_often(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the positions of a mask are counted once to be used again and again, instead of the mask each time."""
    if in_forward(node, ctx) and ctx.loops(node):
        return False  # `for i, expert in enumerate(self.experts): rows = (chosen == i).nonzero()`: once for each
    target = one_target(_outside_of_views(node, ctx))
    if not isinstance(target, ast.Name):
        return False
    name = target.id
    uses = [
        part
        for part in walk(ctx.tree.function_of(node) or ctx.tree.module)
        if (isinstance(part, ast.Subscript) and _is_named(part.slice, name))
        or (
            isinstance(part, ast.Call)
            and callee_name(part) in _BY_INDEX
            and any(_is_named(item, name) for item in part.args)
        )
    ]
    return len(uses) > 1


def _outside_of_views(node: ast.Call, ctx: FileFacts) -> ast.AST | None:
    """What stands around `mask.nonzero()`, `mask.nonzero()[:, 0]` or `mask.nonzero().flatten()`."""
    outer = ctx.tree.parent(node)
    if isinstance(outer, ast.Subscript):
        return ctx.tree.parent(outer)
    while isinstance(outer, ast.Attribute) and outer.attr in tensors.VIEW_METHODS:
        call = ctx.tree.parent(outer)
        outer = ctx.tree.parent(call) if isinstance(call, ast.Call) else None
    return outer


def _is_named(node: ast.expr, name: str) -> bool:
    """`keep`, or `keep.data` as it was written once."""
    if isinstance(node, ast.Attribute) and node.attr == "data":
        node = node.value
    return isinstance(node, ast.Name) and node.id == name


def _has_classes(node: ast.Call) -> bool:
    given = argument(node, 1, "num_classes")
    return given is not None and not (isinstance(given, ast.UnaryOp) or is_constant(given, -1))


def knows_size(node: ast.Call, name: str, ctx: FileFacts, *, is_method: bool) -> bool:
    """Whether the host knows how large the result is, as far as what else is given tells."""
    if name == "where":
        return len(node.args) != 1
    if name == "one_hot":
        return _has_classes(node)
    if name != "repeat_interleave":
        return False
    repeats = argument(node, 0 if is_method else 1, "repeats")
    if keyword(node, "output_size") is not None:
        return True
    if repeats is None:
        return is_method  # `torch.repeat_interleave(repeats)` counts as well
    # The values are on the device, and so are the repeats, wherever they come from: torch wants both in one place.
    kind = ctx.kind(repeats)
    if is_on_device(repeats, ctx) or (kind.tag is Tag.TENSOR and kind.place is Place.UNKNOWN):
        return False
    return kind.known or kind.on_host or not _is_difference(repeats)


def _is_difference(node: ast.expr) -> bool:
    """`starts[1:] - starts[:-1]`: of lists there is no difference, and of arrays torch takes none."""
    return isinstance(node, ast.BinOp) and all(
        isinstance(side, ast.Subscript) and isinstance(side.slice, ast.Slice) for side in (node.left, node.right)
    )
