"""Loops that go through a dimension of a tensor."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.loops import OVER_FEW_PARTS
from perflint.analysis.values.kind import Tag

#: Loops of fewer turns are not worth a word.
_FEW = 10


def goes_over_dimension(turns: ast.expr, ctx: FileFacts) -> bool:
    """Whether the loop goes through a range that is a tensor's size, or a number that is not small."""
    if not isinstance(turns, ast.Call) or not isinstance(turns.func, ast.Name) or turns.func.id != "range":
        return False
    if turns.keywords or not 1 <= len(turns.args) <= 2:
        return False
    if len(turns.args) == 2 and not isinstance(turns.args[0], ast.Constant):
        return False
    stop = turns.args[-1]
    if OVER_FEW_PARTS.search(ctx.text(stop)):
        return False
    if isinstance(stop, ast.Constant):
        return isinstance(stop.value, int) and stop.value >= _FEW
    return _is_size(stop, ctx)


def _is_size(stop: ast.expr, ctx: FileFacts) -> bool:
    """`x.shape[0]`, `x.size(0)`, `len(x)`, or a name that was set to one of these or taken from `x.shape`."""
    if isinstance(stop, ast.Subscript):
        if isinstance(stop.value, ast.Call) and not stop.value.args:
            return _is_size(stop.value, ctx)
        return (
            isinstance(stop.value, ast.Attribute) and stop.value.attr == "shape" and _is_tensor(stop.value.value, ctx)
        )
    if isinstance(stop, ast.Call):
        if isinstance(stop.func, ast.Name):
            return stop.func.id == "len" and len(stop.args) == 1 and _is_tensor(stop.args[0], ctx)
        return isinstance(stop.func, ast.Attribute) and stop.func.attr == "size" and _is_tensor(stop.func.value, ctx)
    if not isinstance(stop, ast.Name):
        return False
    found = ctx.inference.flow.definitions(stop)
    if len(found) != 1 or found[0].value is None or isinstance(found[0].value, ast.Name):
        return False
    value = found[0].value
    if found[0].path:
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
            value = value.value  # `n, m = x.shape[:2]`
        if isinstance(value, ast.Attribute) and value.attr == "shape":
            return _is_tensor(value.value, ctx)
        return isinstance(value, ast.Call) and not value.args and _is_size(value, ctx)
    return _is_size(value, ctx)


def _is_tensor(node: ast.expr, ctx: FileFacts) -> bool:
    return ctx.kind(node).tag is Tag.TENSOR
