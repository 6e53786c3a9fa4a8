"""TPL116: tensors widened on the host right before they are sent to the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Claims,
    Context,
    Finding,
    Fix,
    Heat,
    Impact,
    Place,
    Rule,
    Span,
    Tag,
    has_unpacking,
    last_name,
    tensors,
)
from perflint.api.invariants import round_trip
from perflint.api.names import PADDING_MASK
from perflint.api.transfers import constructor, widens

#: Wider than anything they are called on, or no change at all.
_WIDEST = {"long": "int64", "double": "float64"}


class CastBeforeTransfer(Rule):
    """A widening cast before the copy converts on the host and transfers more bytes than necessary.

    What it does

    Reports `x.float().to(device)`, `x.long().to(device)` and `x.double().to(device)` where the cast widens the value.

    Why is this slow?

    `images.float().to(device)` converts on the CPU into new pageable memory, then transfers four bytes for each pixel
    instead of one. The device converts in negligible time, and the loader's pinned memory speeds up only the copy of
    the original batch.

    What to do

    Write `images.to(device, non_blocking=True).float()`. The same holds for `.long()` and `.double()`.

    Fix safety

    Unsafe: values are the same bits (widening is exact), but if the value has a wider dtype than it seems, the
    transfer grows.

    Not reported

    - Narrowing casts (float64 to float32, anything to half): cast before the copy.
    - Values that already have the wider dtype, where the cast does nothing. Integers are assumed to be int64.
    - Casts that perflint cannot prove to widen.
    - Numbers that are collected one by one, and values that the host uses after the cast.

    References

    - `torch.Tensor.to`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html
    - A guide on good usage of non_blocking and pin_memory:
      https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
    """

    code, name = "TPL116", "cast-before-transfer"
    minor_beside_reads = True
    numerics = "same bits"
    impact = Impact.MEDIUM
    listens = (Calls("to", "cuda"),)
    at_least = Heat.STEP
    needs_accelerator = True
    claims = Claims("to-device", waits=False)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute) or has_unpacking(node):
            return
        cast = node.func.value
        if not (isinstance(cast, ast.Call) and isinstance(cast.func, ast.Attribute)) or cast.args or cast.keywords:
            return
        if cast.func.attr not in (*_WIDEST, "float") or ctx.role(node) == "data":
            return
        value = cast.func.value
        if constructor(cast, tensors.CONSTRUCTORS, ctx) is not None:
            return  # alloc-then-transfer says what is wrong there
        kind = ctx.kind(value)
        if not kind.holds_tensors or kind.place is not Place.HOST or not ctx.kind(node).on_accelerator:
            return
        if round_trip(node, ctx) or PADDING_MASK.search(last_name(value)):
            return
        sure = widens(cast.func.attr, value, node, ctx)
        if sure is None:
            return
        text = " ".join(ctx.edit.receiver(value).split())
        yield self.finding(
            cast,
            ctx,
            f"`{ctx.text(cast)}` {ctx.heat(node).phrase} on the host, and the copy transfers the wider dtype.",
            advice=f"Copy first and cast on the device: `{text}{_suffix(cast, node, ctx)}.{cast.func.attr}()`.",
            fix=self._fix(node, cast, value, ctx),
            confidence=min(sure, kind.certainty),
        )

    @staticmethod
    def _fix(node: ast.Call, cast: ast.Call, value: ast.expr, ctx: Context) -> Fix | None:
        assert isinstance(cast.func, ast.Attribute)
        suffix = _suffix(cast, node, ctx)
        if not _only_moves(node, ctx):
            return None  # the cast would then come behind the type that the move gives
        if not suffix.startswith(".") or "\n" in suffix or ctx.edit.would_lose_comment(node, value):
            return None
        return Fix(
            "Cast on the device",
            Applicability.UNSAFE,
            (ctx.edit.replace(node, f"{ctx.edit.receiver(value)}{suffix}.{cast.func.attr}()"),),
            reason="if the value has a wider dtype than it seems, the transfer grows",
        )


def _only_moves(node: ast.Call, ctx: Context) -> bool:
    """Whether a move is told a device and no type: not `.to(device, dtype)`, nor `.to(other)`."""
    given = [*node.args, *(item.value for item in node.keywords if item.arg == "device")]
    if len(given) > 1 or any(item.arg not in ("device", "non_blocking") for item in node.keywords):
        return False
    return not any(ctx.kind(item).is_tensor or ctx.kind(item).tag is Tag.DTYPE for item in given)


def _suffix(cast: ast.Call, node: ast.Call, ctx: Context) -> str:
    """The move as written: `.to(device, non_blocking=True)`."""
    start, end = ctx.tree.span(cast), ctx.tree.span(node)
    return _text(Span(start.end_line, start.end_column, end.end_line, end.end_column), ctx)


def _text(span: Span, ctx: Context) -> str:
    if span.line != span.end_line:
        return "\n"
    return ctx.source.lines[span.line - 1][span.column - 1 : span.end_column - 1]
