"""Whether two calls in a function give the same: by their text and by what their arguments mean."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.forwards import is_pure
from perflint.syntax.walk import walk


def meaning_of(call: ast.Call, ctx: FileFacts) -> str:
    """A call as text, with the names of its arguments read as what they were made by: `model(tokenize(text))`."""
    parts = [ctx.text(_made_by(item, ctx) or item) for item in call.args]
    parts += [f"{item.arg}={ctx.text(_made_by(item.value, ctx) or item.value)}" for item in call.keywords]
    return f"{ctx.text(call.func)}({', '.join(parts)})"


def _made_by(node: ast.expr, ctx: FileFacts) -> ast.Call | None:
    """The call that a name was set to, where it gives the same for the same arguments."""
    found = ctx.inference.flow.definitions(node) if isinstance(node, ast.Name) else ()
    if len(found) != 1 or found[0].path or not isinstance(found[0].node, ast.Assign):
        return None
    value = found[0].value
    return value if isinstance(value, ast.Call) and is_pure(value, ctx) else None


def means_the_same(one: ast.expr, other: ast.expr, ctx: FileFacts, depth: int) -> bool:
    """Whether two expressions have the same value, seen through names set twice to the same."""
    if ctx.text(one) != ctx.text(other):
        left, right = _made_by(one, ctx), _made_by(other, ctx)
        if left is None or right is None or depth == 0 or ctx.text(left) != ctx.text(right):
            return False
        return means_the_same(left, right, ctx, depth - 1)
    mine = [part for part in walk(one) if isinstance(part, ast.Name)]
    theirs = [part for part in walk(other) if isinstance(part, ast.Name)]
    for part in walk(one):
        if isinstance(part, ast.Call) and not is_pure(part, ctx):
            return False
    return all(_name_means_the_same(left, right, ctx, depth) for left, right in zip(mine, theirs))


def _name_means_the_same(left: ast.Name, right: ast.Name, ctx: FileFacts, depth: int) -> bool:
    flow = ctx.inference.flow
    first, second = flow.definitions(left), flow.definitions(right)
    if {id(item) for item in first} == {id(item) for item in second}:
        return True
    if depth == 0 or len(first) != 1 or len(second) != 1:
        return False
    one, other = first[0], second[0]
    if not (isinstance(one.node, ast.Assign) and isinstance(other.node, ast.Assign)) or one.path or other.path:
        return False
    if one.value is None or other.value is None or ctx.text(one.value) != ctx.text(other.value):
        return False
    return means_the_same(one.value, other.value, ctx, depth - 1)
