"""Fixes of indices of the host: made on the device of what they index, written as a slice, or kept as a buffer."""

from __future__ import annotations

import ast
from itertools import pairwise

from perflint.api import Applicability, Context, Fix, tensors
from perflint.api.transfers import constructor

from .allocating import counts_up, is_replaced
from .keeping import keep_list

_MADE = frozenset({"torch.arange", "torch.randperm"})
_GENERATOR = "the numbers come from the generator of the device, and the host's is not advanced"
_SHORTER = "a slice past the end is shorter, where an index raises an error"


def index_there(node: ast.Subscript, index: ast.expr, ctx: Context) -> Fix | None:
    """The fix of `data[index]` for an index that is made where it is used."""
    if isinstance(index, ast.List):
        return _as_slice(node, index, ctx) or keep_list(index, ctx)
    made = constructor(index, _MADE, ctx)
    if made is None or not isinstance(node.value, ast.Name) or not ctx.kind(node.value).is_tensor:
        return None
    if any(item.arg in ("device", "generator", "out", "pin_memory", None) for item in made.keywords):
        return None
    drawn = ctx.target(made.func) in tensors.RANDOM_CONSTRUCTORS
    reason = _GENERATOR if drawn else _why_unsafe(made, ctx)
    return Fix(
        "Make the index on the device",
        Applicability.UNSAFE if reason else Applicability.SAFE,
        (ctx.edit.set_keyword(made, "device", f"{ctx.tree.text(node.value)}.device"),),
        reason=reason,
        numerics="changes training" if drawn else "same bits",
    )


def _why_unsafe(made: ast.Call, ctx: Context) -> str:
    if not counts_up(made, ctx):
        return "the device may differ from the host in rounding"
    return "`torch.arange` is replaced by something else in this file" if is_replaced("torch.arange", ctx) else ""


def _as_slice(node: ast.Subscript, index: ast.List, ctx: Context) -> Fix | None:
    """`x[:, 1:4]` for `x[:, [1, 2, 3]]`, where arithmetic takes the result: it does not see that it is a view."""
    numbers = [item.value for item in index.elts if isinstance(item, ast.Constant) and type(item.value) is int]
    if len(numbers) != len(index.elts) or len(numbers) < 2 or numbers[0] < 0 or not _is_operand(node, ctx):
        return None
    step = numbers[1] - numbers[0]
    if step < 1 or any(later - earlier != step for earlier, later in pairwise(numbers)):
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [index]
    if not all(item is index or isinstance(item, ast.Slice) or ctx.text(item) == "..." for item in parts):
        return None
    text = f"{numbers[0]}:{numbers[-1] + 1}" + (f":{step}" if step > 1 else "")
    # A slice is no expression by itself: the whole is written anew.
    texts = [text if item is index else ctx.tree.text(item) for item in parts]
    return Fix(
        "Write the index as a slice",
        Applicability.UNSAFE,
        (ctx.edit.replace(node, f"{ctx.edit.receiver(node.value)}[{', '.join(texts)}]"),),
        reason=_SHORTER,
        numerics="same bits",
    )


def _is_operand(node: ast.Subscript, ctx: Context) -> bool:
    """Whether an operator, which makes a tensor of its own, takes what is selected."""
    return isinstance(node.ctx, ast.Load) and isinstance(ctx.tree.parent(node), (ast.BinOp, ast.Compare, ast.UnaryOp))
