"""TPL106: pinning on the main thread for a copy that waits anyway."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Applicability, Calls, Context, Finding, Fix, Heat, Impact, Rule, Tag, has_unpacking, keyword

_MOVES = ("to", "cuda")


class PinOnMainThread(Rule):
    """Pinning a tensor right before a blocking copy adds a host copy and gains nothing.

    What it does

    Reports `x.pin_memory().to(device)` without `non_blocking=True`, on the thread that runs the step.

    Why is this slow?

    `x.pin_memory()` allocates page-locked memory and copies the tensor into it on the main thread. Pinning only pays
    for an asynchronous copy, and a blocking `.to(device)` does not use it. The pair is up to twice as slow as a plain
    `.to(device)` (PyTorch's tutorial on pinned memory).

    What to do

    Pin in the loader (`pin_memory=True`, a separate thread does it) and copy with `non_blocking=True`. Or remove the
    `.pin_memory()`.

    Fix safety

    Unsafe: values are the same bits, but `.pin_memory()` raises on machines without an accelerator, and code may rely
    on that. Passing `non_blocking=True` instead would keep the copy from blocking.

    Not reported

    - `x.pin_memory().to(device, non_blocking=True)`: an extra host copy for an asynchronous transfer, which can be
      right.
    - Pinning once, before a loop, or in a prefetching thread.

    References

    - `torch.Tensor.pin_memory`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.pin_memory.html
    - A guide on good usage of non_blocking and pin_memory:
      https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
    """

    code, name = "TPL106", "pin-on-main-thread"
    numerics = "same bits"
    impact = Impact.LOW
    listens = (Calls("pin_memory"),)
    at_least = Heat.STEP
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute) or node.args or node.keywords:
            return
        move = _move_of(node, ctx)
        if move is None or has_unpacking(move) or _may_not_block(move) or not ctx.kind(move).on_accelerator:
            return
        pinned_already = ctx.kind(node.func.value)
        if pinned_already.tag in (Tag.LOADER, Tag.MODULE) or pinned_already.pinned:
            return  # what a loader has pinned is not copied again
        pinned = ctx.text(node.func.value)
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` {ctx.heat(node).phrase} and copies on the host, but the following "
            f"`.{_name(move)}(...)` blocks anyway.",
            advice=f"Pin in the loader and copy with `non_blocking=True`, or move `{pinned}` as it is.",
            fix=Fix(
                "Remove the pinning",
                Applicability.UNSAFE,
                (ctx.edit.replace(node, ctx.tree.text(node.func.value)),),
                reason="`.pin_memory()` raises without an accelerator, and code may rely on that",
            ),
        )


def _move_of(node: ast.Call, ctx: Context) -> ast.Call | None:
    """The `.to(...)` or `.cuda(...)` that is called on the pinned tensor."""
    attribute = ctx.tree.parent(node)
    if not isinstance(attribute, ast.Attribute) or attribute.attr not in _MOVES:
        return None
    call = ctx.tree.parent(attribute)
    return call if isinstance(call, ast.Call) and call.func is attribute else None


def _may_not_block(move: ast.Call) -> bool:
    """Whether `non_blocking` is given, by keyword or position: `.to(d, t, True)`, `.cuda(None, True)`."""
    return keyword(move, "non_blocking") is not None or len(move.args) > (1 if _name(move) == "cuda" else 2)


def _name(move: ast.Call) -> str:
    assert isinstance(move.func, ast.Attribute)
    return move.func.attr
