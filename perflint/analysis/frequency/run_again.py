"""Models that run again and again."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.finding import Heat
from perflint.syntax.walk import walk


def runs_again(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a model runs again and again here: in hot code, or in a loop that is none over several models."""
    if ctx.heat(call) >= Heat.EPOCH:
        return True
    model = {part.id for part in walk(call.func) if isinstance(part, ast.Name)}
    return any(
        not isinstance(loop, (ast.For, ast.AsyncFor))
        or model.isdisjoint(part.id for part in walk(loop.target) if isinstance(part, ast.Name))
        for loop in ctx.loops(call)
    )
