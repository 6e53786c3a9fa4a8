"""What to write instead of selecting by a mask: it depends on what becomes of the rows."""

from __future__ import annotations

import ast

from perflint.api import Context, callee_name
from perflint.api.names import SUPPRESSES
from perflint.api.waits import later_uses, mask_in

WRITTEN = "Use `torch.where` with values of the full shape, or `masked_scatter` where there is one value per True."
_HANDED = (
    "Count once where the mask is made, `{mask}.nonzero(as_tuple=True)`, and pass the positions instead of the mask."
)
_REDUCED = "Keep all rows and weight them by the mask: `(values * mask).sum() / mask.sum()`."
_DROPPED = "`torch.where` cannot drop rows. Carry the mask along to what reduces them."
#: Only where something tells how many rows there are at most.
BOUNDED = "`torch.nonzero_static(mask, size=...)` gives a fixed number of positions, padded, and does not wait."
_COUNTED = "Only the number of rows is used: count with `mask.sum()`, and keep it on the device."
SUPPRESSED = (
    "Suppress once for all classes and images: `torchvision.ops.batched_nms(boxes, scores, idxs, threshold)` needs no "
    "rows of each. For rotated boxes, first shift the centers by class and image, so that they cannot overlap."
)
_ELEMENTWISE = (
    "Compute for all rows and choose with `torch.where`, where no row that is left out can raise or give NaN."
)


def instead_of_selecting(node: ast.Subscript, ctx: Context) -> str:
    """What to do about `x[mask]` that is read."""
    mask = mask_in(node, ctx)
    if is_handed(mask, ctx) and isinstance(ctx.tree.parent(node), ast.Return):
        return _HANDED.format(mask=ctx.text(mask))
    if isinstance(mask, ast.Name) and _selections(mask, ctx) > 1:
        return (
            f"Count once for all that `{mask.id}` selects: `{mask.id}.nonzero(as_tuple=True)`, and index by that. "
            f"Or: {without_rows(node, ctx)}"
        )
    return without_rows(node, ctx)


def written_to(node: ast.Subscript, ctx: Context) -> str:
    """What to do about `x[mask]` that is written."""
    mask = mask_in(node, ctx)
    return f"{WRITTEN} Or: {_HANDED.format(mask=ctx.text(mask))}" if is_handed(mask, ctx) else WRITTEN


def is_handed(mask: ast.expr, ctx: Context) -> bool:
    """Whether a mask is a parameter of a small function that is called with it, and not of a module's forward."""
    function = ctx.tree.function_of(mask)
    if not isinstance(mask, ast.Name) or function is None or function.name == "forward":
        return False
    made = ctx.inference.flow.definitions(mask)
    return bool(made) and all(isinstance(item.node, ast.arg) for item in made)


def without_rows(node: ast.expr, ctx: Context) -> str:
    """What takes the place of a selection: a weight where it is reduced, a choice where it goes back to its place."""
    is_bound = isinstance(ctx.tree.parent(node), ast.Assign)
    uses: list[ast.expr] = [*later_uses(node, ctx)] if is_bound else [node]
    uses = uses or [node]
    if uses and all(_is_counted(use, ctx) for use in uses):
        return _COUNTED
    if uses and all(_is_reduced(use, ctx) for use in uses):
        return _REDUCED
    if uses and all(_goes_back_to(use, node, ctx) for use in uses):
        return _ELEMENTWISE
    return f"{_DROPPED} {BOUNDED}" if is_bounded(node, ctx) else _DROPPED


def suppression_behind(node: ast.expr, ctx: Context) -> ast.Call | None:
    """The non-maximum suppression of its own that rows are selected for in a loop: it needs them, so that a mask
    serves nobody.
    """
    loop = next(iter(ctx.loops(node)), None)
    call = _suppression_of(node, ctx) if loop is not None else None
    return call if call is not None and loop in ctx.loops(call) else None


def _suppression_of(node: ast.expr, ctx: Context) -> ast.Call | None:
    """The call of a non-maximum suppression that what a value is made into is handed to, in the same function."""
    waiting: list[ast.expr] = [node]
    seen: set[ast.AST] = set()
    while waiting:
        value = waiting.pop()
        statement = ctx.tree.statement_of(value)
        for outer in ctx.tree.ancestors(value):
            if outer is statement:
                break
            if isinstance(outer, ast.Call) and SUPPRESSES.search(callee_name(outer)):
                return outer
        if isinstance(statement, ast.Assign) and statement not in seen:
            seen.add(statement)
            waiting += _uses_of_bound(statement, ctx)
    return None


def _uses_of_bound(statement: ast.Assign, ctx: Context) -> list[ast.Name]:
    """Where the names that a statement binds are used."""
    flow = ctx.inference.flow
    names = [part for target in statement.targets for part in ast.walk(target) if isinstance(part, ast.Name)]
    made = [definition for name in names if (definition := flow.definition_at(name)) is not None]
    return [use for definition in made for use in flow.uses_of(definition)]


def is_bounded(node: ast.expr, ctx: Context) -> bool:
    """Whether so many of the rows are taken at most: `positions[:k]`, of them or of a name for them."""
    outer: ast.AST | None = node
    while isinstance(outer, (ast.Attribute, ast.Call, ast.Subscript)):
        node, outer = outer, ctx.tree.parent(outer)
        if _is_cut(node):
            return True
    return any(_is_cut(ctx.tree.parent(use)) for use in later_uses(node, ctx))


def _is_cut(node: ast.AST | None) -> bool:
    if not isinstance(node, ast.Subscript):
        return False
    index = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    return isinstance(index, ast.Slice) and index.upper is not None


def _is_counted(value: ast.expr, ctx: Context) -> bool:
    """`x[mask].numel()`, `len(x[mask])`, `x[mask].shape[0]`"""
    outer = ctx.tree.parent(value)
    if isinstance(outer, ast.Attribute):
        return outer.attr in ("shape", "numel", "size", "nelement")
    return isinstance(outer, ast.Call) and value in outer.args and callee_name(outer) == "len"


def _is_reduced(value: ast.expr, ctx: Context) -> bool:
    """`x[mask].mean()`, `torch.sum(x[mask] * w)`: a single number is made of the rows."""
    child: ast.AST = value
    for outer in ctx.tree.ancestors(value):
        if isinstance(outer, ast.Attribute):
            call = ctx.tree.parent(outer)
            plain = isinstance(call, ast.Call) and not call.args and not call.keywords
            return plain and outer.attr in ("sum", "mean")
        if isinstance(outer, ast.Call):
            return child in outer.args and ctx.is_call_of(outer, "torch.sum", "torch.mean") and len(outer.args) == 1
        if not isinstance(outer, (ast.BinOp, ast.UnaryOp)):
            return False
        child = outer
    return False


def _goes_back_to(value: ast.expr, selection: ast.expr, ctx: Context) -> bool:
    """`y[mask] = x[mask] * 2`: what is computed of the rows is written to the places they came from."""
    statement = ctx.tree.statement_of(value)
    if not isinstance(statement, ast.Assign) or not isinstance(selection, ast.Subscript):
        return False
    target = statement.targets[0]
    return isinstance(target, ast.Subscript) and ctx.text(target.slice) == ctx.text(selection.slice)


def _selections(mask: ast.Name, ctx: Context) -> int:
    """How many times the same value of a mask selects in its function."""
    definitions = ctx.inference.flow.definitions(mask)
    return sum(
        isinstance(part, ast.Subscript)
        and isinstance(part.slice, ast.Name)
        and part.slice.id == mask.id
        and list(ctx.inference.flow.definitions(part.slice)) == list(definitions)
        for part in ctx.walk(ctx.tree.function_of(mask) or ctx.tree.module)
    )
