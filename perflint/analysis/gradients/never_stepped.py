"""Optimizers that a function makes for a schedule alone, and that take no step in it."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.kind import Tag

#: What is done with an optimizer that takes no step.
_IDLE = frozenset({"zero_grad", "load_state_dict", "state_dict"})


def is_never_stepped(made: ast.Call, ctx: FileFacts) -> bool:
    """Whether what a function makes goes nowhere but into schedules, and no step of it is called."""
    parent = ctx.tree.parent(made)
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or not isinstance(parent.targets[0], ast.Name):
        return False
    function = ctx.tree.function_of(made)
    if function is None:
        return False  # others may import it
    uses = ctx.inference.flow.uses(function, parent.targets[0].id)
    return all(isinstance(use.ctx, ast.Store) or _is_idle(use, ctx) for use in uses)


def _is_idle(use: ast.Name, ctx: FileFacts) -> bool:
    outer = ctx.tree.parent(use)
    if isinstance(outer, ast.Attribute):
        return outer.attr in _IDLE
    if not isinstance(outer, ast.Call) or outer.args[:1] != [use] or ctx.kind(outer).tag is not Tag.SCHEDULER:
        return False
    kept = ctx.tree.parent(outer)
    return isinstance(kept, ast.Assign) and isinstance(kept.targets[0], ast.Name)
