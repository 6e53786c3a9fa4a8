"""Masks that a loop writes row by row: a constant into a span of each, whose ends the number of the row says."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.phases.loop_purpose import names_in
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import callee_name

_FILLED = frozenset({"zeros", "ones", "full", "empty"})


def fills_spans(loop: ast.For, ctx: FileFacts) -> str | None:
    """The square tensor whose rows a loop fills, each with a constant from one number to another:
    `for i in range(n): mask[i, : i + 1] = 0`.
    """
    turns = loop.iter
    if not isinstance(loop.target, ast.Name) or not isinstance(turns, ast.Call) or len(turns.args) != 1:
        return None
    count = turns.args[0]
    if not isinstance(turns.func, ast.Name) or turns.func.id != "range" or not isinstance(count, ast.Name):
        return None
    name = None
    for statement in loop.body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        target = statement.targets[0]
        if isinstance(target, ast.Name):
            if ctx.kind(statement.value).tag is not Tag.NUMBER:
                return None
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            if not isinstance(statement.value, (ast.Constant, ast.UnaryOp)) or not _is_span(target, loop, ctx):
                return None
            if name not in (None, target.value.id) or not _is_square(target.value, count, ctx):
                return None
            name = target.value.id
        else:
            return None
    return name


def _is_span(target: ast.Subscript, loop: ast.For, ctx: FileFacts) -> bool:
    """`[i, a:b]`, where the ends are numbers."""
    assert isinstance(loop.target, ast.Name)
    if not isinstance(target.slice, ast.Tuple) or len(target.slice.elts) != 2:
        return False
    row, span = target.slice.elts
    if not isinstance(row, ast.Name) or row.id != loop.target.id or not isinstance(span, ast.Slice) or span.step:
        return False
    ends = [end for end in (span.lower, span.upper) if end is not None]
    return bool(ends) and all(ctx.kind(end).tag is Tag.NUMBER for end in ends)


def _is_square(tensor: ast.Name, count: ast.Name, ctx: FileFacts) -> bool:
    """Whether a tensor was made with as many rows and as many columns as the loop has turns."""
    made = ctx.inference.flow.definitions(tensor)
    value = made[0].value if len(made) == 1 and not made[0].path else None
    if not isinstance(value, ast.Call) or callee_name(value) not in _FILLED:
        return False
    if not (ctx.target(value.func) or "").startswith("torch."):
        return False
    size = value.args[0].elts if value.args and isinstance(value.args[0], (ast.Tuple, ast.List)) else value.args
    names = [names_in(part) for part in size[:2]]
    return len(names) == 2 and all(list(part) == [count.id] for part in names)
