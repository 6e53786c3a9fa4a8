"""What is computed of each parameter in a walk: of their values alone, or a penalty that the loss is made of."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.derived_names import mentions_values
from perflint.syntax.walk import walk


def is_of_values_only(parts: list[ast.AST], names: set[str], ctx: FileFacts) -> bool:
    """Whether it is about gradients or values of the parameters only, and no penalty that the loss is made of."""
    if ctx.grad_off(parts[0]):
        return True
    return any(
        isinstance(item, ast.Attribute)
        and item.attr in ("grad", "data", "detach", "main_grad")
        and isinstance(item.value, ast.Name)
        and item.value.id in names
        for part in parts
        for item in walk(part)
    )


def is_penalty(node: ast.AST, parts: list[ast.AST], ctx: FileFacts) -> bool:
    """Whether what the walk sums up is put into a loss behind it."""
    summed = {
        item.target.id
        for part in parts
        for item in walk(part)
        if isinstance(item, ast.AugAssign) and isinstance(item.target, ast.Name)
    }
    around = ctx.tree.function_of(node) or ctx.tree.module
    for item in walk(around) if summed else ():
        if isinstance(item, (ast.Assign, ast.AugAssign)) and item.lineno > node.lineno:  # type: ignore[attr-defined]
            targets = item.targets if isinstance(item, ast.Assign) else [item.target]
            if any("loss" in ctx.text(target) for target in targets) and mentions_values(item.value, summed):
                return True
    return False
