"""What to do about data that a step copies to the device."""

from __future__ import annotations

import ast

from perflint.api import OVERWRITING, Context, Fix, Provenance, Tag, callee_name, is_from, keyword
from perflint.api.invariants import is_number, is_step_constant, single
from perflint.api.transfers import (
    Copy,
    DataCopy,
    What,
    asks_not_to_block,
    blocks_by_parameter,
    of_array,
    of_own_iterator,
    sized_type,
)
from perflint.api.words import short_text

from .copy_fixes import cast_of_batch, copied_without_waiting, made_of_batch, overwritten_without_waiting
from .filled import filled_on_device, filled_text


def advice_for_copy(copy: Copy, ctx: Context) -> str:
    """What to do about what is copied."""
    if copy.what is What.MADE:
        makers = list(dict.fromkeys(ctx.text(call.func) for call in copy.origin.made))
        where = ctx.tree.function_of(copy.origin.made[0])
        place = "" if where is ctx.tree.function_of(copy.call) or where is None else f" in `{where.name}`"
        return f"Create it on the device: pass `device=` to `{'`, `'.join(makers[:2])}`{place}."
    sizes = sized_type(copy, ctx)
    if sizes:
        return f"Create it on the device: `torch.empty(sizes, dtype={sizes}, device=...)`."
    if (work := _computed_by(copy, ctx)) is not None:
        return f"Move what it is computed from to the device, and call `{work}` there."
    if (cast := cast_of_batch(copy, ctx)) is not None:
        return f"Cast `{cast}` in the dataset, or on the device after the copy: what a cast makes is not pinned."
    if (made := made_of_batch(copy, ctx)) is not None:
        what = f"`{short_text(made, ctx, 40)}`"
        return f"Compute {what} in the dataset, or on the device after the copy: its result on the host is not pinned."
    if (told := blocks_by_parameter(copy.call, ctx)) is not None:
        return f"Pass `non_blocking=True` to `{told.name}`, with `pin_memory=True` in the loader."
    if asks_not_to_block(copy.call, ctx) and of_array(copy.moved, ctx) is not None:
        return "Return tensors, not arrays, from the dataset or collate function: `pin_memory=True` pins only tensors."
    if asks_not_to_block(copy.call, ctx) and of_own_iterator(copy.moved, ctx):
        return "Make the batches in a `DataLoader` with workers and `pin_memory=True`, or pin them in a thread."
    text = ctx.text(copy.call)
    if callee_name(copy.call) == "type_as":  # takes no option, as `to` does
        text = f"{ctx.text(copy.moved)}.to({ctx.text(copy.call.args[0])})"
    call = f"{text[:-1]}non_blocking=True)" if text.endswith("()") else f"{text[:-1].rstrip(', ')}, non_blocking=True)"
    if is_from(copy.value.origin, Provenance.LOADER, Provenance.NAMED_LOADER):
        return f"Write `{call}`, with `pin_memory=True` in the loader."
    if copy.value.tag is Tag.BATCH:
        return f"Write `{call}`."
    return f"Write `{call}`, and pin large tensors first (`.pin_memory()`)."


def _computed_by(copy: Copy, ctx: Context) -> str | None:
    """The function whose result on the host is moved, rather than a batch: `F.interpolate`."""
    origins = ctx.inference.origins(copy.moved)
    made = origins[0] if len(origins) == 1 else None
    if not isinstance(made, ast.Call) or not (ctx.target(made.func) or "").startswith("torch.nn.functional."):
        return None
    return ctx.text(made.func)


def _is_one_number(copy: DataCopy, ctx: Context) -> bool:
    return is_number(single(copy.data), ctx)


def fix_for_data(copy: DataCopy, ctx: Context) -> Fix | None:
    if not isinstance(copy.node, ast.Call):
        return None
    if callee_name(copy.node) == OVERWRITING:
        return overwritten_without_waiting(copy.node, ctx)
    filled = filled_on_device(copy.node, ctx) if _is_one_number(copy, ctx) else None
    return filled or copied_without_waiting(copy.node, ctx)


def advice_for_data(copy: DataCopy, ctx: Context) -> str:
    """What to do about numbers that a constructor or an assignment copies."""
    if not isinstance(copy.node, ast.Call) and ctx.kind(copy.data).is_tensor:
        return (
            "Make what is written on the device, or fill a tensor of the host and copy that once: "
            "`.to(device, non_blocking=True)`."
        )
    if not isinstance(copy.node, ast.Call):
        return "Collect the numbers in a list, and copy them once: `torch.tensor(rows).to(device, non_blocking=True)`."
    if callee_name(copy.node) == OVERWRITING:
        from_loader = is_from(ctx.kind(copy.data).origin, Provenance.LOADER, Provenance.NAMED_LOADER)
        pinned = "with `pin_memory=True` in the loader" if from_loader else "and pin large tensors first"
        return f"Write `{ctx.text(copy.node)[:-1]}, non_blocking=True)`, {pinned}."
    if _is_one_number(copy, ctx):
        filled = " ".join(filled_text(copy.node, ctx).split())
        return f"Pass the Python number if the operation accepts it, or write `{filled}`."
    made = callee_name(copy.node) if callee_name(copy.node) in ("as_tensor", "asarray") else "tensor"
    words = f"Copy without blocking: `torch.{made}(...).to(device, non_blocking=True)`"
    if keyword(copy.node, "device") is None and callee_name(copy.node) != "new_tensor":  # the program has set it
        words = f'Copy without blocking: `torch.{made}(..., device="cpu").to("cuda", non_blocking=True)`'
    return f"{words}, or copy once if it never changes." if is_step_constant(copy.data, ctx) else f"{words}."
