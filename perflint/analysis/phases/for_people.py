"""Loops whose every turn waits for a person: for a key, an answer or a closed window. Nothing else costs there."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.finding import Heat
from perflint.ir.calls import is_constant, keyword

_KEY, _WINDOW, _ANSWER = "cv2.waitKey", "matplotlib.pyplot.show", "input"


def waits_for_person(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a loop around `node` waits for somebody in each of its turns."""
    return any(ctx.once(_asks_somebody, loop) for loop in ctx.loops(node))


def _asks_somebody(loop: ast.AST, ctx: FileFacts) -> bool:
    return any(
        isinstance(part, ast.Call) and _waits(part, ctx) and ctx.heat(part) >= Heat.STEP for part in ctx.walk(loop)
    )


def _waits(call: ast.Call, ctx: FileFacts) -> bool:
    if isinstance(call.func, ast.Name) and call.func.id == _ANSWER:
        return ctx.is_call_of(call, _ANSWER)
    target = ctx.target(call.func)
    if target == _KEY:
        delay = call.args[0] if call.args else keyword(call, "delay")
        return delay is None or is_constant(delay, 0)  # so many milliseconds at most, or until there is one
    return target == _WINDOW and keyword(call, "block") is None
