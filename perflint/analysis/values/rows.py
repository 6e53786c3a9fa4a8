"""Which arrays have rows of several numbers, told by their rank, or by two indices at once that a function takes of
them: here, or where the project's functions are given them.
"""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import FUNCTION
from perflint.analysis.values.kind import Tag
from perflint.syntax.tree import FUNCTIONS
from perflint.syntax.walk import walk


def has_rows(array: ast.expr, ctx: FileFacts) -> bool:
    """Whether what `array` holds is an array of two dimensions or more, for all that its function says."""
    kind = ctx.kind(array)
    if kind.tag not in (Tag.ARRAY, Tag.UNKNOWN):
        return False
    if kind.rank is not None and kind.rank > 0:
        return kind.rank > 1
    around = ctx.tree.function_of(array)
    if not isinstance(array, ast.Name) or around is None:
        return False
    if _is_indexed_twice(array.id, around):
        return True
    return any(_takes_rows(part, array.id, ctx) for part in walk(around) if isinstance(part, ast.Call))


def _is_indexed_twice(name: str, region: ast.AST) -> bool:
    """`points[:, 3:]`, `points[keep, 0]`; but `scores[:, None]` makes a column of what has one dimension."""
    return any(
        isinstance(part, ast.Subscript)
        and isinstance(part.value, ast.Name)
        and part.value.id == name
        and isinstance(part.slice, ast.Tuple)
        and not any(isinstance(item, ast.Constant) and item.value in (None, Ellipsis) for item in part.slice.elts)
        and not any(isinstance(item, ast.Attribute) and item.attr == "newaxis" for item in part.slice.elts)
        for part in walk(region)
    )


def _takes_rows(call: ast.Call, name: str, ctx: FileFacts) -> bool:
    """Whether a function of the project that is given the array by its place takes two indices at once of it."""
    places = [at for at, item in enumerate(call.args) if isinstance(item, ast.Name) and item.id == name]
    ref = ctx.project_target(call.func) if places else None
    other = ctx.inference.at(ref.path) if ref is not None and ref.kind == FUNCTION else None
    if ref is None or other is None:
        return False
    for qualname, node in other.tree.qualified:
        if qualname == ref.name and isinstance(node, FUNCTIONS):
            given = [*node.args.posonlyargs, *node.args.args]
            return any(at < len(given) and _is_indexed_twice(given[at].arg, node) for at in places)
    return False
