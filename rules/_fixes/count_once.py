"""The fix of a mask that selects several times: its positions are counted once, and what is selected by them is the
same.
"""

from __future__ import annotations

import ast

from perflint.api import Applicability, Context, Edit, Fix, Tag, walk
from perflint.api.waits import is_boolean

#: Statements whose own expressions do not run exactly once before what follows.
_REPEATED = (ast.While, ast.For, ast.AsyncFor)
#: What a mask selects from, as far as anything is known of it.
_TENSORS = (Tag.TENSOR, Tag.OUTPUT, Tag.UNKNOWN)
_NESTED = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def select_by_positions(node: ast.Subscript, ctx: Context) -> Fix | None:
    """`index = mask.nonzero(as_tuple=True)` once, and `x[index]` for each `x[mask]` behind it."""
    mask = node.slice
    if not isinstance(mask, ast.Name) or not is_boolean(mask, ctx):
        return None
    selections = [item for item in _same_mask(mask, ctx) if counts(item, ctx)]
    if node not in selections or len(selections) < 2 or any(_is_nested(item, ctx) for item in selections):
        return None
    name = ctx.edit.free_name(f"{mask.id}_index")
    count = _count(selections, f"{name} = {mask.id}.nonzero(as_tuple=True)", ctx)
    if count is None or ctx.inference.flow.is_mutated(mask.id, _around(node, ctx)):
        return None
    return Fix(
        "Count the mask once",
        Applicability.UNSAFE,
        (count, *(ctx.edit.replace(item.slice, name) for item in selections)),
        reason=f"a shape of `{mask.id}` that does not fit raises an error as a mask, but not as positions",
        numerics="same bits",
    )


def _count(selections: list[ast.Subscript], text: str, ctx: Context) -> Edit | None:
    """The line that counts: before the first selection, where that leads to all others, or behind the mask itself."""
    graph, first = ctx.control_flow(selections[0]), selections[0]
    loops, statement = ctx.loops(first), ctx.tree.statement_of(first)
    if isinstance(statement, _REPEATED) or any(ctx.loops(item) != loops for item in selections):
        return None
    if all(ctx.tree.statement_of(item) is statement or graph.dominates(first, item) for item in selections[1:]):
        return ctx.edit.insert_before(statement, text)
    definitions = ctx.inference.flow.definitions(first.slice)  # type: ignore[arg-type]
    made = definitions[0].node if len(definitions) == 1 else None
    if not isinstance(made, ast.Assign) or ctx.loops(made) != loops:
        return None
    both = any(graph.reaches(one, other) for one in selections for other in selections if one is not other)
    return ctx.edit.insert_after(made, text) if both else None


def counts(node: ast.Subscript, ctx: Context) -> bool:
    """Whether `x[mask]` has the device count: read, or written with a tensor. With a number it is a `masked_fill`."""
    outer = ctx.tree.parent(node)
    if isinstance(node.ctx, ast.Store) and isinstance(outer, ast.Assign):
        return ctx.kind(outer.value).tag in _TENSORS and not isinstance(outer.value, (ast.Constant, ast.UnaryOp))
    if isinstance(node.ctx, ast.Del) or (isinstance(node.ctx, ast.Store) and not isinstance(outer, ast.AugAssign)):
        return False
    return ctx.kind(node.value).tag in _TENSORS  # such a mask selects from nothing but tensors


def _around(node: ast.AST, ctx: Context) -> ast.AST:
    return ctx.tree.function_of(node) or ctx.tree.module


def _same_mask(mask: ast.Name, ctx: Context) -> list[ast.Subscript]:
    """Where the same value of a mask selects in its function, in the order of the source."""
    definitions = list(ctx.inference.flow.definitions(mask))
    found = [
        part
        for part in walk(_around(mask, ctx))
        if isinstance(part, ast.Subscript)
        and isinstance(part.slice, ast.Name)
        and part.slice.id == mask.id
        and list(ctx.inference.flow.definitions(part.slice)) == definitions
    ]
    return sorted(found, key=lambda part: (part.lineno, part.col_offset))


def _is_nested(node: ast.AST, ctx: Context) -> bool:
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, ast.stmt):
            return False
        if isinstance(outer, _NESTED):
            return True
    return False
