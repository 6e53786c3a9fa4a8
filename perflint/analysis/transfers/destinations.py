"""Whether a move goes to an accelerator, as far as its destination tells."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.precision import TYPE_OR_HOST
from perflint.analysis.values.kind import Device, Place, Tag
from perflint.finding import Confidence, Heat
from perflint.ir.calls import callee_name, keyword


def goes_to_accelerator(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a move goes to an accelerator, or in hot code to where one is as a rule."""
    kind = ctx.kind(node)
    if kind.on_accelerator:
        return True
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("type_as", "type"):
        return _goes_where_another_is(node, ctx)
    # `x.device` of a tensor whose place is not known, in hot code: as a rule an accelerator.
    given = node.args[0] if node.args else keyword(node, "device")
    if isinstance(given, ast.Attribute) and given.attr == "device":
        like = ctx.kind(given.value)
        is_of_host = like.place is Place.HOST or like.device is Device.CPU_OR_GIVEN
        return not is_of_host and ctx.heat(node) >= Heat.STEP
    if isinstance(given, ast.Name) and ctx.heat(node) >= Heat.STEP:
        like = ctx.kind(given)
        if like.place is Place.HOST or like.device in (Device.CPU, Device.CPU_OR_GIVEN):
            return False
        if not like.known:
            return not node.args or not TYPE_OR_HOST.search(given.id)
        return like.tag in (Tag.TENSOR, Tag.DEVICE, Tag.STRING)
    return False


def _goes_where_another_is(node: ast.Call, ctx: FileFacts) -> bool:
    """`.type_as(x)`, `.type(x.type())` in hot code: as a rule to an accelerator, unless `x` is on the host."""
    like = type_of(node)
    if like is None or ctx.heat(node) < Heat.STEP:
        return False
    kind = ctx.kind(like)
    return kind.is_tensor and kind.place is not Place.HOST and kind.certainty is not Confidence.LOW


def type_of(move: ast.Call) -> ast.expr | None:
    """The tensor whose type a move takes over: `x` of `.type_as(x)` and of `.type(x.type())`."""
    given = move.args[0] if len(move.args) == 1 else None
    if callee_name(move) == "type":
        is_asked = isinstance(given, ast.Call) and callee_name(given) == "type" and not given.args
        given = given.func.value if is_asked and isinstance(given.func, ast.Attribute) else None  # type: ignore[union-attr]
    return given
