"""Expressions that take one item of a data set again: the reads of a function or module, grouped by loop, data set and
index, for the rule about items that are made twice.
"""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.loading.sample_cost import work_of_item
from perflint.syntax.tree import FUNCTIONS
from perflint.syntax.walk import walk

_Reads = dict[tuple[int, str], list[ast.Subscript]]


def earlier_reads(item: ast.Subscript, ctx: FileFacts) -> list[ast.Subscript]:
    """The expressions before `item` that make the same item of a data set, in the same iteration, for another part of
    it; empty unless making an item is known to be work.
    """
    part = part_taken(item, ctx)
    if not _is_plain(item.slice):
        return []
    if part is None:
        return _measured_before(item, ctx)
    group = ctx.once(_reads, ctx.tree.scope_of(item))[_key(item, ctx)]
    before = [other for other in group if _place(other) < _place(item) and _is_same(other, item, ctx)]
    # The same part twice may be two views of one sample, each augmented in another way.
    if all(part_taken(other, ctx) == part for other in before):
        return []
    return before if work_of_item(item.value, ctx) == "work" else []


def _measured_before(item: ast.Subscript, ctx: FileFacts) -> list[ast.Subscript]:
    """`first = data[i]` before another whole `data[i]`, where nothing is asked of the first one but its size: no second
    view of the sample.
    """
    if not isinstance(item.ctx, ast.Load):
        return []
    group = ctx.once(_whole, ctx.tree.scope_of(item)).get(_key(item, ctx), ())
    before = [other for other in group if _place(other) < _place(item) and _is_same(other, item, ctx)]
    before = [other for other in before if _is_measured(other, ctx)]
    return before if before and work_of_item(item.value, ctx) == "work" else []


def _whole(scope: ast.AST, ctx: FileFacts) -> _Reads:
    """`name = data[i]` of a function, by loop and text."""
    found: _Reads = {}
    for part in ctx.body(scope) if isinstance(scope, FUNCTIONS) else ctx.walk(scope):
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.Subscript) and _is_plain(part.value.slice):
            if len(part.targets) == 1 and isinstance(part.targets[0], ast.Name):
                found.setdefault(_key(part.value, ctx), []).append(part.value)
    return found


def _is_measured(item: ast.Subscript, ctx: FileFacts) -> bool:
    """Whether the name of an item is used for its size and nothing else."""
    statement = ctx.tree.parent(item)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(target, ast.Name):
        return False
    scope = ctx.tree.scope_of(item)
    parts = ctx.body(scope) if isinstance(scope, FUNCTIONS) else ctx.walk(scope)
    uses = [
        part for part in parts if isinstance(part, ast.Name) and part.id == target.id and isinstance(part.ctx, ast.Load)
    ]
    return bool(uses) and all(_asks_for_size(use, ctx) for use in uses)


def _asks_for_size(use: ast.Name, ctx: FileFacts) -> bool:
    around = ctx.tree.parent(use)
    if isinstance(around, ast.Call):
        return isinstance(around.func, ast.Name) and around.func.id == "len"
    return isinstance(around, ast.Attribute) and around.attr in ("shape", "size", "ndim", "dtype")


def part_taken(item: ast.Subscript, ctx: FileFacts) -> str | None:
    """What `data[i]["image"]` and `data[i][0]` take of an item."""
    outer = ctx.tree.parent(item)
    if not isinstance(outer, ast.Subscript) or outer.value is not item or not isinstance(outer.ctx, ast.Load):
        return None
    return ctx.text(outer.slice) if isinstance(outer.slice, ast.Constant) else None


def _is_plain(index: ast.expr) -> bool:
    """Whether an index names one sample, and the same one when it is computed again."""
    return not isinstance(index, (ast.Constant, ast.Slice, ast.Tuple)) and not any(
        isinstance(part, (ast.Call, ast.NamedExpr)) for part in walk(index)
    )


def _reads(scope: ast.AST, ctx: FileFacts) -> _Reads:
    found: _Reads = {}
    for part in ctx.body(scope) if isinstance(scope, FUNCTIONS) else ctx.walk(scope):
        if isinstance(part, ast.Subscript) and part_taken(part, ctx) is not None and _is_plain(part.slice):
            found.setdefault(_key(part, ctx), []).append(part)
    return found


def _key(item: ast.Subscript, ctx: FileFacts) -> tuple[int, str]:
    loops = ctx.loops(item)
    return (loops[0].lineno if loops else 0, ctx.text(item))


def _place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _is_same(one: ast.Subscript, other: ast.Subscript, ctx: FileFacts) -> bool:
    """Whether the names in two reads mean the same, and one run comes to both."""
    if ctx.are_exclusive(one, other):
        return False
    flow = ctx.inference.flow
    return all(flow.definitions(a) == flow.definitions(b) for a, b in zip(_names(one), _names(other)))


def _names(item: ast.Subscript) -> list[ast.Name]:
    return [part for part in walk(item) if isinstance(part, ast.Name)]
