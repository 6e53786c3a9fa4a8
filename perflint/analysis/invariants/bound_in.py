"""Where the names that a loop reads are bound: in the same iteration, in an earlier one, or before the loop."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.finding import Heat
from perflint.syntax.walk import walk


def is_assigned_in(loop: ast.stmt, name: ast.Name, ctx: FileFacts) -> bool:
    """Whether every value of a name that may arrive is assigned in the loop, not added to an earlier one."""
    inside = {id(part) for part in walk(loop)}
    definitions = ctx.inference.flow.definitions(name)
    return bool(definitions) and all(
        isinstance(definition.node, ast.Assign) and id(definition.node) in inside for definition in definitions
    )


def is_bound_before_steps(name: ast.Name, node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a name is bound before the outermost loop around a node that runs every step."""
    hot = [loop for loop in ctx.loops(node) if ctx.body_heat(loop) >= Heat.STEP]
    if not hot:
        return False
    inside = {id(part) for part in walk(hot[-1])}
    made = ctx.inference.flow.definitions(name)
    return bool(made) and all(id(item.node) not in inside for item in made)


def carries_names(loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether an iteration reads a name before it binds it, so that it depends on the one before: a hidden state."""
    inside = {id(part) for part in walk(loop)}
    for part in walk(loop):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            nodes = [id(definition.node) in inside for definition in ctx.inference.flow.definitions(part)]
            if any(nodes) and not all(nodes):
                return True
    return False
