"""Fixes of copies that the host waits for: `non_blocking=True`, or `device=` where a tensor is made."""

from __future__ import annotations

import ast
import re

from perflint.api import (
    Applicability,
    Confidence,
    Context,
    Edit,
    Fix,
    Provenance,
    Tag,
    arguments_of,
    callee_name,
    is_from,
    keyword,
    tensors,
    walk,
    ways_in,
)
from perflint.api.aliases import changes_later, unread
from perflint.api.transfers import Copy, asks_not_to_block, blocks_by_parameter, cast_before, made_anew

#: Types to which the host and the device convert alike; integers cut what is out of their range each in its own way.
_ALIKE = frozenset(
    f"torch.{name}"
    for name in "bool half float double float16 bfloat16 float32 float64 cfloat cdouble complex64 complex128".split()
)
_ALIKE_CLASSES = frozenset(f"torch.cuda.{name}Tensor" for name in "Bool Half BFloat16 Float Double".split())
_STREAMS = ("Stream", "ExternalStream", "set_stream")


def cast_of_batch(copy: Copy, ctx: Context) -> str | None:
    """What of a loader's batch is cast on the host before it is copied, as it is written."""
    if not is_from(copy.value.origin, Provenance.LOADER, Provenance.NAMED_LOADER):
        return None
    return cast_before(copy.moved, ctx)


def made_of_batch(copy: Copy, ctx: Context) -> ast.expr | None:
    """The operation of the host that has made what is copied of a loader's batch."""
    if not is_from(copy.value.origin, Provenance.LOADER, Provenance.NAMED_LOADER):
        return None
    return made_anew(copy.moved, ctx)


def without_waiting(copy: Copy, ctx: Context) -> Fix | None:
    """`non_blocking=True`: safe where that is proven. It does nothing for what was made on the host."""
    if cast_of_batch(copy, ctx) is not None or made_of_batch(copy, ctx) is not None:
        return None
    if asks_not_to_block(copy.call, ctx) or blocks_by_parameter(copy.call, ctx) is not None:
        return None
    reason, edit = why_unsafe(copy, ctx), ctx.edit.set_keyword(copy.call, "non_blocking", "True")
    if callee_name(copy.call) == "type_as":  # takes no option, as `to` does
        if ctx.edit.would_lose_comment(copy.call):
            return None
        like = ctx.tree.text(copy.call.args[0])
        edit = ctx.edit.replace(copy.call, f"{ctx.tree.text(copy.moved)}.to({like}, non_blocking=True)")
    return Fix(
        "Copy without blocking",
        Applicability.UNSAFE if reason else Applicability.SAFE,
        (edit,),
        reason=reason,
        numerics="" if reason else "same bits",
    )


def moved_without_waiting(node: ast.Call, ctx: Context) -> Fix | None:
    """`non_blocking=True` at a move of data that was made for it."""
    if callee_name(node) not in ("to", "cuda"):
        return None
    return _unblocked((ctx.edit.set_keyword(node, "non_blocking", "True"),))


def overwritten_without_waiting(node: ast.Call, ctx: Context) -> Fix:
    """`inputs.copy_(batch, non_blocking=True)`"""
    return _unblocked((ctx.edit.set_keyword(node, "non_blocking", "True"),))


def copied_without_waiting(node: ast.Call, ctx: Context) -> Fix | None:
    """`torch.tensor(data).to(device, non_blocking=True)` for `torch.tensor(data, device=device)`."""
    device = keyword(node, "device")
    if device is None or keyword(node, "requires_grad") is not None or ctx.edit.would_lose_comment(node):
        return None
    text = f"{on_host(node, ctx)}.to({ctx.tree.text(device)}, non_blocking=True)"
    return _unblocked((ctx.edit.replace(node, text),))


def _unblocked(edits: tuple[Edit, ...]) -> Fix:
    return Fix(
        "Copy without blocking",
        Applicability.UNSAFE,
        edits,
        reason="the device may be MPS, where an asynchronous copy can corrupt data",
    )


def on_host(made: ast.expr, ctx: Context) -> str:
    """The text of what makes a tensor, without the device."""
    text = ctx.tree.text(made)
    given = keyword(made, "device") if isinstance(made, ast.Call) else None
    if given is not None:
        text = re.sub(rf",?\s*device\s*=\s*{re.escape(ctx.tree.text(given))}\s*", "", text, count=1)
        text = text.replace("(, ", "(")
    return text


def why_unsafe(copy: Copy, ctx: Context) -> str:
    """What a person has to look at before a copy need not be waited for; empty where nothing is left open."""
    moved, node = copy.moved, copy.call
    if copy.value.tag is Tag.BATCH and is_from(copy.value.origin, Provenance.TOKENIZER):
        return "results of a tokenizer accept the option only from transformers 4.48 on"
    if not copy.destination.may_be_cuda:
        return "the device may be MPS, where an asynchronous copy can corrupt data"
    if copy.value.tag is not Tag.TENSOR or copy.value.certainty is Confidence.LOW:
        return f"`{ctx.text(moved)}` may not be a plain tensor, and its `.to` may not accept the option"
    if _is_beside_streams(node, ctx):
        return "another stream may read the copy, or the host may write to it, before it has finished"
    if _narrows(node, ctx):
        return "a value out of the dtype's range converts differently on the device and on the host"
    if changes_later(moved, node, ctx):
        return "the source is written to afterwards, while the copy may still run"
    if (use := unread(moved, node, ctx)) is not None:
        return f"a later use of `{ctx.text(use)}` may write to it while the copy still runs"
    if ctx.program.whole.pins_itself:
        return "the program pins memory itself, and may overwrite it while the copy still runs"
    return ""


def made_there(copy: Copy, device: str, ctx: Context) -> Fix | None:
    """`device=` at the constructors that a tensor is made of: the move behind them has nothing left to do."""
    made = copy.origin.made
    if not device or not all(_can_be_told(call, copy, ctx) for call in made):
        return None
    edits: list[Edit] = [ctx.edit.set_keyword(call, "device", device) for call in made if not _is_like(call, ctx)]
    draws, statement = copy.origin.drawn, ctx.tree.parent(copy.call)
    if isinstance(statement, ast.Assign) and _only_moves(copy, statement, device, ctx):
        edits += ctx.edit.delete_statement(statement)
    return Fix(
        "Create the tensor on the device",
        Applicability.UNSAFE,
        tuple(edits),
        reason="random numbers would come from the device's generator"
        if draws
        else "later operations would run on the device as well, and may round differently",
        numerics="changes training" if draws else "same to rounding",
    )


def device_text(call: ast.Call, ctx: Context) -> str:
    """What to write behind `device=` for a move; empty where that cannot be said."""
    assert isinstance(call.func, ast.Attribute)
    given = [item for item in call.keywords if item.arg not in ("non_blocking", "dtype", "copy")]
    if call.func.attr == "cuda":
        return "" if call.args or given else '"cuda"'
    if call.func.attr == "type_as":
        return f"{ctx.edit.receiver(call.args[0])}.device" if call.args else ""
    target = call.args[0] if call.args else (given[0].value if given and given[0].arg == "device" else None)
    if call.func.attr != "to" or target is None:
        return ""
    if ctx.kind(target).is_tensor:
        return f"{ctx.edit.receiver(target)}.device"
    return ctx.tree.text(target) if is_device(target, ctx) else ""


def is_device(given: ast.expr, ctx: Context) -> bool:
    """Whether an expression is a device, as far as can be told: a tensor in its place gives its type as well."""
    tag = ctx.kind(given).tag
    named = ctx.text(given).rpartition(".")[2].lower()
    return tag in (Tag.DEVICE, Tag.STRING) or (tag is Tag.UNKNOWN and ("device" in named or named == "dev"))


def _can_be_told(made: ast.Call, copy: Copy, ctx: Context) -> bool:
    """Whether a constructor stands in the function of the move, behind what the device is known by."""
    if ctx.tree.function_of(made) is not ctx.tree.function_of(copy.call) or ctx.edit.would_lose_comment(made, made):
        return False
    if any(keyword(made, name) is not None for name in ("device", "pin_memory", "generator", "out")):
        return False
    names = [part for item in arguments_of(copy.call) for part in walk(item) if isinstance(part, ast.Name)]
    for name in names:
        for item in ctx.inference.flow.definitions(name):
            inside = ctx.tree.function_of(item.node) is ctx.tree.function_of(copy.call)
            if inside and not isinstance(item.node, ast.arg) and item.node.lineno >= made.lineno:  # type: ignore[attr-defined]
                return False
    return not any(item.arg is None for item in made.keywords)


def _only_moves(copy: Copy, statement: ast.Assign, device: str, ctx: Context) -> bool:
    """`x = x.to(device)`: nothing is left of it when `x` is there already."""
    targets = [ctx.text(target) for target in statement.targets]
    is_plain = isinstance(copy.moved, ast.Name) and targets == [copy.moved.id]
    return (
        is_plain
        and not (len(copy.call.args) == 1 and device != ctx.tree.text(copy.call.args[0]))
        and (len(arguments_of(copy.call)) <= 1)
    )


def _is_like(made: ast.Call, ctx: Context) -> bool:
    return ctx.target(made.func) in tensors.LIKE_CONSTRUCTORS


def _narrows(call: ast.Call, ctx: Context) -> bool:
    """Whether the call converts to an integer type, or to one that cannot be told: a copy that waits does so on the
    host, any other there.
    """
    name = callee_name(call)
    if name == "type":
        return not all(ctx.target(item) in _ALIKE_CLASSES for item in call.args)
    types = [item.value for item in call.keywords if item.arg == "dtype"]
    types += call.args[1:2] if name == "to" else []
    types += [item for item in call.args[:1] if ctx.kind(item).tag is Tag.DTYPE]
    return any(ctx.target(item) not in _ALIKE and not isinstance(item, ast.Constant) for item in types)


def _is_beside_streams(call: ast.Call, ctx: Context) -> bool:
    """Whether code around, here or on the way here, has streams of its own: what they read does not wait for a copy
    that the host does not wait for.
    """
    paths = {ctx.path, *(edge.caller.path for edge in ways_in(ctx.scope(call), ctx))}
    return ctx.program.mentions(_STREAMS, paths)
