"""Batches that a step casts on the host before it copies them: the result of a cast is not pinned, whatever was."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import callee_name

_CASTS = frozenset({"float", "double", "half", "long", "int", "bfloat16"})


def cast_before(moved: ast.expr, ctx: FileFacts) -> str | None:
    """What is cast, as it is written, of a value that a step moves: `x` of `x = x.float()`; None where nothing is."""
    made = ctx.inference.origins(moved)
    if not made or not all(_is_cast(item, ctx) for item in made):
        return None
    first = made[0]
    assert isinstance(first, ast.Call)
    assert isinstance(first.func, ast.Attribute)
    return ctx.text(first.func.value)


def _is_cast(made: ast.expr, ctx: FileFacts) -> bool:
    """`x.float()`, `x.type(torch.FloatTensor)`."""
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute):
        return False
    name = callee_name(made)
    if name == "type" and len(made.args) == 1:
        target = ctx.target(made.args[0]) or ""
        return target.startswith("torch.") and ".cuda" not in target
    return name in _CASTS and not made.args and not made.keywords
