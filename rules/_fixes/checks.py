"""Tests of device tensors that need no answer on the host: checks that raise, and skips of writes by an empty mask."""

from __future__ import annotations

import ast

from perflint.api import Applicability, Confidence, Context, Edit, Fix, is_text
from perflint.api.waits import is_asked

#: `torch._assert_async` takes a message since then.
_SINCE = (2, 1)
_MOST = 3
_REDUCTIONS = frozenset({"any", "all"})


def assert_on_device(node: ast.AST, ctx: Context) -> Fix | None:
    """`torch._assert_async(...)` for an assertion, or for an `if` that does nothing but raise with a fixed text."""
    if (ctx.torch_version or _SINCE) < _SINCE or _is_in_try(node, ctx):
        return None
    if isinstance(node, ast.Assert):
        conditions, text = _parts(node.test, ast.And), node.msg
    elif isinstance(node, ast.If) and (raised := _raised(node, ctx)) is not None:
        conditions, text = _parts(node.test, ast.Or), raised.message
        conditions = conditions and [(test, not truth) for test, truth in conditions]
    else:
        return None
    if not conditions or len(conditions) > _MOST or not (text is None or is_text(text)):
        return None
    if ctx.edit.would_lose_comment(node):
        return None
    if not all(is_asked(test, ctx) and _is_surely_tensor(test, ctx) for test, _ in conditions):
        return None
    torch, imports = ctx.edit.ensure_import("torch", at=node)
    said = "" if text is None else f", {ctx.tree.text(text)}"
    indent = _indent(node, ctx)
    held = [
        ctx.tree.text(test) if truth else f"{torch}.logical_not({ctx.tree.text(test)})" for test, truth in conditions
    ]
    lines = [f"{torch}._assert_async({what}{said})" for what in held]
    return Fix(
        "Check on the device",
        Applicability.UNSAFE,
        (ctx.edit.replace(node, f"\n{indent}".join(lines)), *imports),
        reason="a failed check raises RuntimeError, later, and ends the process's use of CUDA; MPS has no such check",
        numerics="same bits",
    )


class _Raised:
    """What an `if` raises: the text of the exception, or nothing."""

    def __init__(self, message: ast.expr | None) -> None:
        self.message = message


def _raised(node: ast.If, ctx: Context) -> _Raised | None:
    only = node.body[0]
    if len(node.body) > 1 or node.orelse or not isinstance(only, ast.Raise) or only.cause is not None:
        return None
    if not ctx.tree.text(node).startswith("if"):
        return None  # an `elif`
    made = only.exc
    if isinstance(made, ast.Call):
        return _Raised(next(iter(made.args), None)) if len(made.args) < 2 and not made.keywords else None
    return _Raised(None) if made is not None else None


def _parts(test: ast.expr, joint: type[ast.boolop]) -> list[tuple[ast.expr, bool]] | None:
    """The tests that `and` (or `or`) joins, each with whether it is to be true; None where it is no such chain."""
    found: list[tuple[ast.expr, bool]] = []
    for part in test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, joint) else [test]:
        is_negated = isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not)
        inner = part.operand if isinstance(part, ast.UnaryOp) and is_negated else part
        if isinstance(inner, (ast.BoolOp, ast.NamedExpr)) or (isinstance(inner, ast.UnaryOp) and is_negated):
            return None
        found.append((inner, not is_negated))
    return found


def _is_surely_tensor(test: ast.expr, ctx: Context) -> bool:
    """Whether a test is a tensor of torch, wherever it is: of a Python bool the check would raise TypeError."""
    kind = ctx.kind(test)
    if not kind.is_tensor:
        return False
    if kind.certainty is Confidence.HIGH:
        return True
    inner = test
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in _REDUCTIONS:
        if (ctx.target(inner.func) or "").startswith("torch."):
            return True
        inner = inner.func.value
    return isinstance(inner, ast.Call) and (ctx.target(inner.func) or "").startswith("torch.")


def _is_in_try(node: ast.AST, ctx: Context) -> bool:
    """Whether something around a check may expect that it raises."""
    function = ctx.tree.function_of(node)
    for outer in ctx.tree.ancestors(node):
        if outer is function:
            return False
        if isinstance(outer, ast.Try):
            return True
    return False


def without_test(node: ast.If, ctx: Context) -> Fix | None:
    """The block without the `if mask.any():` around it, where all that it does is to write by that mask."""
    text = ctx.tree.text(node)
    first = node.body[0]
    strings = (part for part in ast.walk(node) if isinstance(part, (ast.Constant, ast.JoinedStr)))
    if not text.startswith("if") or any(part.lineno != part.end_lineno for part in strings):
        return None
    header = ctx.source.lines[(node.test.end_lineno or 1) - 1][node.test.end_col_offset :]
    if header.strip(") ") != ":":
        return None
    inner, outer = _indent(first, ctx), _indent(node, ctx)
    lines = text.split("\n")[(node.test.end_lineno or 1) - node.lineno + 1 :]
    if not inner.startswith(outer) or any(line.strip() and not line.startswith(inner) for line in lines):
        return None
    body = "\n".join(outer + line[len(inner) :] if line.strip() else line for line in lines)
    edits: tuple[Edit, ...] = (ctx.edit.replace(node, body.removeprefix(outer)),)
    return Fix(
        "Write by the mask without the test",
        Applicability.UNSAFE,
        edits,
        reason="with an empty mask the values are computed all the same, and may have another dtype",
        numerics="same bits",
    )


def _indent(node: ast.AST, ctx: Context) -> str:
    line: str = ctx.source.lines[node.lineno - 1]  # type: ignore[attr-defined]
    return line[: len(line) - len(line.lstrip())]


__all__ = ["assert_on_device", "without_test"]
