"""The fix that casts a tensor behind its copy to the device, not before it."""

from __future__ import annotations

import ast

from perflint.api import Applicability, Context, Fix, Span, Tag


def cast_on_device(node: ast.Call, cast: ast.Call, value: ast.expr, ctx: Context) -> Fix | None:
    """`x.float().to(device)` becomes `x.to(device).float()`."""
    assert isinstance(cast.func, ast.Attribute)
    suffix = move_as_written(cast, node, ctx)
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


def move_as_written(cast: ast.Call, node: ast.Call, ctx: Context) -> str:
    """The move as written: `.to(device, non_blocking=True)`."""
    start, end = ctx.tree.span(cast), ctx.tree.span(node)
    return _text(Span(start.end_line, start.end_column, end.end_line, end.end_column), ctx)


def _text(span: Span, ctx: Context) -> str:
    if span.line != span.end_line:
        return "\n"
    return ctx.source.lines[span.line - 1][span.column - 1 : span.end_column - 1]
