"""What to do about a read of a device value: it depends on what the program does with the number."""

from __future__ import annotations

import ast

from perflint.api import Context, callee_name, counts, images
from perflint.api.waits import Read, Use, check_around, is_fill_value, only_last_counts, use_of, whole_of_rows
from perflint.api.words import short_text

_FOR_LOOK_UP = (
    "The host needs the number for its look-up: read all numbers of the step with one `.tolist()`, or keep what is "
    "looked up in a tensor and index that with the tensor."
)


def advice_for_read(node: ast.expr, read: Read, ctx: Context, *, forward: bool) -> str:
    value = " ".join(ctx.edit.receiver(read.value).split()).removesuffix(".detach()")
    statement = ctx.tree.statement_of(node)
    whole = whole_of_rows(read.value, ctx)
    if whole is not None:
        return f"Copy all rows at once before the loop: `{ctx.text(whole)}.{'cpu' if read.copies else 'tolist'}()`."
    if isinstance(node, ast.Call) and ctx.target(node.func) in images.CHECKING:
        return "Keep the means and deviations in buffers, and compute `(image - mean) / deviation` with them."
    if only_last_counts(node, ctx) is not None:
        return f"Keep `{value}` on the device, and read that of the last iteration once after the loop."
    use = use_of(node, ctx)
    if use is not Use.OTHER:
        return _for_use(use, node, read, ctx)
    if read.copies and forward:
        return (
            f"If the host needs `{value}`, keep what it had before it went to the device; else compute with it on the "
            "device."
        )
    if read.copies:
        return (
            f"Keep `{value}` on the device and copy once after the loop, or copy with `non_blocking=True` into pinned "
            "memory and read it later."
        )
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        return f"Add `{value}.detach()` instead, and read the sum once after the loop."
    parent = ctx.tree.parent(node)
    if isinstance(parent, ast.Call) and callee_name(parent) == "append":
        return f"Append `{value}.detach()`, and read all at once after the loop: `torch.stack(...).tolist()`."
    if forward:
        return f"Keep `{value}` a tensor, and compute with it on the device."
    return f"Keep `{value}` on the device, and read it only on the steps that need the number."


def _for_use(use: Use, node: ast.expr, read: Read, ctx: Context) -> str:
    """What to do about a value that the host needs: as a tensor it would wait where it is used."""
    if use is Use.CHECK:
        return f"Check on the device with {_check_on_device(node, read, ctx)}, or only behind a debugging switch."
    if use is Use.SIZE:
        return (
            "A size has to be known on the host: compute it there from what the host has (lengths of the inputs), use "
            "a fixed size with padding, or read all sizes of the step with one `.tolist()`."
        )
    if use is Use.HOST:
        return _for_host(node, ctx)
    if use is Use.TENSOR:
        value = " ".join(ctx.edit.receiver(read.value).split())
        return f"The number becomes a tensor again: keep `{value}` on the device, and `expand` it where one is filled."
    if use is Use.LOOKUP:
        return _FOR_LOOK_UP
    return (
        "The host needs the value to decide: test it every few iterations, decide by what the host knows, or compute "
        "both results and choose with `torch.where`."
    )


def _for_host(node: ast.expr, ctx: Context) -> str:
    """What a value can gain that a library of the host needs: the wait stays, but it may be one and come late."""
    others = [part for loop in ctx.loops(node)[:1] for part in ctx.walk(loop) if isinstance(part, ast.Call)]
    if any(callee_name(part) in ("cpu", "numpy", "item", "tolist") and part is not node for part in others):
        return "The host needs the values: bring all that this iteration reads in one copy, after its other GPU work."
    return (
        "The host needs the values: start the copy with `non_blocking=True` into pinned memory, queue other GPU work, "
        "then wait for it."
    )


def _check_on_device(node: ast.expr, read: Read, ctx: Context) -> str:
    """`torch._assert_async(loss < 10)` for `assert loss.item() < 10`."""
    if isinstance(node, ast.Call) and callee_name(node) in ("allclose", "equal"):
        return "`torch._assert_async(torch.isclose(...).all())`"
    check = check_around(node, ctx)
    test = check.test if isinstance(check, ast.Assert) else None
    if test is node:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):  # `all(x > 0)` of Python, element by element
            return f"`torch._assert_async({ctx.edit.receiver(read.value)}.{node.func.id}())`"
        return f"`torch._assert_async({ctx.text(read.value)})`"
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and node in (test.left, *test.comparators):
        tensor = " ".join(ctx.edit.receiver(read.value).split())
        return f"`torch._assert_async({ctx.text(test).replace(ctx.text(node), tensor)})`"
    return "`torch._assert_async` of what has to hold"


def advice_for_number(node: ast.AST, read: Read, ctx: Context) -> str:
    """What to do about `x[i, : lengths[i]]`, `weights[expert]`, `torch.zeros(k)` and `torch.tensor([a.sum(), ...])`."""
    if isinstance(node, ast.Subscript) and not ctx.kind(node.value).is_tensor:
        return _FOR_LOOK_UP
    if isinstance(node, ast.Subscript):
        return (
            "Read all positions of the step with one `.tolist()`, or select on the device: "
            f"`{short_text(node.value, ctx)}.index_select(0, {ctx.text(read.value)}.view(1))`."
        )
    if isinstance(node, ast.Call):
        if callee_name(node) in counts.OF_LISTS:
            return f"Stack the device tensors (`torch.stack([...])`) instead of reading `{ctx.text(read.value)}`."
        if is_fill_value(node, read.value):
            return _for_use(Use.TENSOR, node, read, ctx)
        return _for_use(Use.SIZE, node, read, ctx)
    if ctx.loops(node):
        return (
            "Read the bounds of all rows at once before the loop (`.tolist()`), or take the parts by a mask or by "
            "`gather`, on the device."
        )
    return "Take the part by a mask or by `gather`, on the device, or keep the number on the host all along."
