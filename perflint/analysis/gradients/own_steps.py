"""Calls that train what they run themselves."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.torch_model.effects import Effect


def trains_itself(forward: ast.Call, ctx: FileFacts) -> bool:
    """Whether what is called walks a graph back itself, or a method of this name does, whoever it is of."""
    if ctx.effects(forward).does(Effect.BACKWARD):
        return True
    return isinstance(forward.func, ast.Attribute) and any(
        ctx.program.trains(scope) for scope in ctx.program.named(forward.func.attr)
    )
