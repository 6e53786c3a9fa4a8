"""A growing tensor as a list that is concatenated once behind its loop."""

from __future__ import annotations

import ast

from perflint.api import Applicability, Context, Fix, is_name, walk
from perflint.api.aliases import is_written_in
from perflint.api.loops import NUMPY_JOINS, Grown


def collected_in_list(grown: Grown, loop: ast.stmt, ctx: Context) -> Fix | None:
    """A list before the loop, an append in it and one join behind it."""
    if not isinstance(grown.parts, (ast.List, ast.Tuple)) or not is_name(grown.parts.elts[0], grown.name):
        return None
    if ctx.is_call_of(grown.call, *NUMPY_JOINS) or getattr(loop, "orelse", None):
        return None
    others = [*grown.call.args[1:], *(item.value for item in grown.call.keywords)]
    if not all(_is_literal(item) for item in others) or not _is_bound_before(grown, loop, ctx):
        return None
    if grown.statement.value is not grown.call or _is_bound_elsewhere(grown, loop):
        return None  # `joined = batch` on the first turn: the join would know nothing of it
    if any(isinstance(part, (ast.Try, ast.Yield, ast.YieldFrom, ast.Return)) for part in walk(loop)):
        return None
    if any(is_written_in(part, loop, ctx) for part in grown.added):
        return None  # a buffer that is filled anew on each turn: the list would hold it many times
    name = ctx.edit.free_name(f"{grown.name}_parts")
    new = ", ".join(ctx.tree.text(part) for part in grown.added)
    added = f"{name}.append({new})" if len(grown.added) == 1 else f"{name}.extend([{new}])"
    rest = [ctx.tree.text(item) for item in grown.call.args[1:]]
    rest += [f"{item.arg}={ctx.tree.text(item.value)}" for item in grown.call.keywords]
    joined = f"{grown.name} = {ctx.tree.text(grown.call.func)}({', '.join([name, *rest])})"
    return Fix(
        "Collect the parts and concatenate them once",
        Applicability.UNSAFE,
        (
            ctx.edit.insert_before(loop, f"{name} = [{grown.name}]"),
            ctx.edit.replace(grown.statement, added),
            ctx.edit.insert_after(loop, joined),
        ),
        reason=("all parts stay alive until they are concatenated; shape errors and in-place writes surface only then"),
    )


def _is_bound_elsewhere(grown: Grown, loop: ast.stmt) -> bool:
    return any(
        isinstance(part, ast.Name)
        and part.id == grown.name
        and not isinstance(part.ctx, ast.Load)
        and part is not grown.statement.targets[0]
        for part in walk(loop)
    )


def _is_bound_before(grown: Grown, loop: ast.stmt, ctx: Context) -> bool:
    """Whether the name holds a tensor when the loop begins: bound in the loop's own block, to no `None`."""
    block = getattr(ctx.tree.parent(loop), "body", [])
    if loop not in block:
        return False
    for statement in reversed(block[: block.index(loop)]):
        if isinstance(statement, ast.Assign) and any(is_name(target, grown.name) for target in statement.targets):
            return isinstance(statement.value, ast.Call)
    return False


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant))
