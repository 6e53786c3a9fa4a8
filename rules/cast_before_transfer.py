"""TPL116: tensors widened on the host right before they are sent to the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Claims, Context, Finding, Heat, Impact, Place, Rule, has_unpacking, last_name, tensors
from perflint.api.invariants import round_trip
from perflint.api.names import PADDING_MASK
from perflint.api.transfers import constructor, widens

from ._fixes.cast_on_device import cast_on_device, move_as_written

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
            advice=f"Copy first and cast on the device: `{text}{move_as_written(cast, node, ctx)}.{cast.func.attr}()`.",
            fix=cast_on_device(node, cast, value, ctx),
            confidence=min(sure, kind.certainty),
        )
