"""Calls that copy a whole picture into an array, `np.asarray(picture)`, for the rule about work that a loop repeats."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.syntax.walk import walk

_COPIES = frozenset({"numpy.array", "numpy.asarray"})
_MAKERS = frozenset({"PIL.Image.open", "PIL.Image.fromarray", "PIL.Image.new"})


def copies_picture(call: ast.Call, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether a call makes an array of a picture of PIL, and nothing in the loop writes into that array."""
    if ctx.target(call.func) not in _COPIES or not call.args or not isinstance(call.args[0], ast.Name):
        return False
    around = ctx.tree.parent(call)
    target = around.targets[0] if isinstance(around, ast.Assign) and len(around.targets) == 1 else None
    if not isinstance(target, ast.Name) or ctx.inference.flow.is_mutated(target.id, loop):
        return False
    return _is_picture(call.args[0], ctx)


def _is_picture(value: ast.Name, ctx: FileFacts) -> bool:
    made = (item for item in ctx.inference.origins(value) if isinstance(item, ast.Call))
    if any(ctx.target(item.func) in _MAKERS for item in made):
        return True
    scope = ctx.tree.scope_of(value)
    return any(isinstance(part, ast.Assign) and _takes_size(part, value.id) for part in walk(scope))


def _takes_size(statement: ast.Assign, name: str) -> bool:
    """`width, height = picture.size`: of an array it is one number."""
    size, target = statement.value, statement.targets[0]
    return (
        isinstance(size, ast.Attribute)
        and size.attr == "size"
        and isinstance(size.value, ast.Name)
        and size.value.id == name
        and isinstance(target, ast.Tuple)
    )
