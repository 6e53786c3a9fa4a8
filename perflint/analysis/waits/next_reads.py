"""Results whose values the host reads next, so that it waits for them in any case."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.implicit_copies import indices_of
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import callee_name
from perflint.syntax.named import one_target
from perflint.syntax.walk import walk
from perflint.torch_model import tensors

_READS = frozenset({"tolist", "cpu", "numpy", "item"})
_REDUCES = frozenset({"sum", "mean", "max", "min", "any", "all", "float", "long", "detach"})


def is_read_next(node: ast.Call | ast.Subscript, ctx: FileFacts, *, by_call: bool = False) -> bool:
    """Whether the host reads what was selected, so that it waits in any case: it is decoded to text, made a list, or
    gone through element by element. Where it is read `by_call`, that call is what waits, and what a rule may tell.
    """
    parent = ctx.tree.parent(node)
    if _reads(node, parent, ctx, by_call=by_call):
        return True
    if isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Constant):
        node, parent = parent, ctx.tree.parent(parent)  # `mask.nonzero(as_tuple=True)[0]`
        if _reads(node, parent, ctx, by_call=by_call):
            return True
    target = one_target(parent)
    if isinstance(target, ast.Tuple) and len(target.elts) == 1:
        target = target.elts[0]
    if not isinstance(target, ast.Name):
        return False
    flow = ctx.inference.flow
    definition = flow.definition_at(target)
    uses = flow.uses_of(definition) if definition is not None else []
    return any(_reads(use, ctx.tree.parent(use), ctx, by_call=by_call) for use in uses) and all(
        _reads(use, outer := ctx.tree.parent(use), ctx, by_call=by_call)
        or (isinstance(outer, ast.Attribute) and outer.attr in ("shape", "size", "numel"))
        or (isinstance(outer, ast.Call) and callee_name(outer) == "len")
        for use in uses
    )


def _reads(value: ast.AST, outer: ast.AST | None, ctx: FileFacts, *, by_call: bool) -> bool:
    while isinstance(outer, ast.Attribute) and (outer.attr in _REDUCES or outer.attr in tensors.VIEW_METHODS):
        value = ctx.tree.parent(outer) or outer  # `x[mask].sum().item()`
        outer = ctx.tree.parent(value)
    if isinstance(outer, ast.Attribute):
        return outer.attr in _READS and isinstance(ctx.tree.parent(outer), ast.Call)
    loop = _loop_through(value, outer, ctx)
    if loop is not None:
        return not by_call and not _selects_in(*loop, ctx)
    is_decoded = isinstance(outer, ast.Call) and value in outer.args and "decode" in callee_name(outer)
    return is_decoded and ctx.kind(outer.func).tag is not Tag.MODULE  # type: ignore[union-attr]


def _loop_through(value: ast.AST, outer: ast.AST | None, ctx: FileFacts) -> tuple[ast.For, ast.expr] | None:
    """The loop that goes through a value, and what it calls each element: with `enumerate` as well."""
    if isinstance(outer, ast.For) and value is outer.iter:
        return outer, outer.target
    if not isinstance(outer, ast.Call) or callee_name(outer) != "enumerate" or value not in outer.args[:1]:
        return None
    loop = ctx.tree.parent(outer)
    if not isinstance(loop, ast.For) or outer is not loop.iter:
        return None
    pair = loop.target.elts if isinstance(loop.target, ast.Tuple) else []
    return (loop, pair[1]) if len(pair) == 2 else None


def _selects_in(loop: ast.For, element: ast.expr, ctx: FileFacts) -> bool:
    """Whether the positions that a loop goes through select from tensors, where nothing of them is read."""
    if not isinstance(element, ast.Name):
        return False
    name = element.id
    if any(isinstance(part, ast.Call) and callee_name(part) in _READS for part in walk(loop)):
        return False
    return any(
        isinstance(part, ast.Subscript)
        and ctx.kind(part.value).is_tensor
        and any(isinstance(item, ast.Name) and item.id == name for item in indices_of(part))
        for part in walk(loop)
    )
