"""Loops and lists that compute a tensor one index at a time, as one operation would compute all of it."""

from __future__ import annotations

import ast
from typing import NamedTuple

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.few_turns import turns_few_times
from perflint.analysis.frequency.over_dimensions import goes_over_dimension
from perflint.analysis.naming.loops import OVER_FEW_PARTS
from perflint.analysis.phases.loop_purpose import names_in
from perflint.analysis.values.kind import Tag
from perflint.analysis.values.masked_rows import written_where
from perflint.analysis.values.row_by_row import computed_by_rows, is_same_for_all_rows, reads_a_row
from perflint.analysis.values.spans import fills_spans
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk

#: What makes one tensor of rows.
_JOINS = ("torch.stack", "torch.cat", "torch.concat", "torch.vstack")


def computed_by_index(loop: ast.For, ctx: FileFacts) -> str | None:
    """The tensor that a loop computes one index or span at a time, each without the others."""
    if loop.orelse or OVER_FEW_PARTS.search(ctx.text(loop.target)):
        return None
    if isinstance(loop.target, ast.Name) and goes_over_dimension(loop.iter, ctx):
        return computed_by_rows(loop, loop.target.id, ctx) or written_where(loop, ctx)
    rows = _rows(loop.target, loop.iter, ctx)
    if rows is not None and not turns_few_times(loop, ctx):
        name = computed_by_rows(loop, rows.number, ctx, rows.names)
        return ctx.text(rows.of[rows.names.index(name)]) if name in rows.names else name
    return fills_spans(loop, ctx) or written_where(loop, ctx)


class _Rows(NamedTuple):
    """The names of rows that a loop goes through, each of one of `of`, and of their number."""

    names: tuple[str, ...]
    of: tuple[ast.expr, ...]
    number: str = ""


def _rows(target: ast.expr, turns: ast.expr, ctx: FileFacts) -> _Rows | None:
    """`for row in x`, `for i, row in enumerate(x)`, `for row, other in zip(x, y)`."""
    if isinstance(turns, ast.Call) and isinstance(turns.func, ast.Name) and turns.func.id in ("enumerate", "zip"):
        names = target.elts if isinstance(target, ast.Tuple) else []
        if turns.keywords or not turns.args:
            return None
        if turns.func.id == "enumerate":
            if len(names) != 2 or not isinstance(names[0], ast.Name):
                return None
            found = _rows(names[1], turns.args[0], ctx)
            return found._replace(number=names[0].id) if found is not None and not found.number else None
        each = [_rows(name, item, ctx) for name, item in zip(names, turns.args)]
        if len(names) != len(turns.args) or any(item is None or item.number for item in each):
            return None
        known = [item for item in each if item is not None]
        return _Rows(tuple(name for item in known for name in item.names), tuple(turns.args))
    is_tensor = ctx.kind(turns).tag is Tag.TENSOR and not OVER_FEW_PARTS.search(ctx.text(turns))
    return _Rows((target.id,), (turns,)) if is_tensor and isinstance(target, ast.Name) else None


def stacked_rows(node: ast.Call, ctx: FileFacts) -> ast.ListComp | ast.GeneratorExp | None:
    """The list of `torch.stack([f(x[i]) for i in range(len(x))])` and of `torch.stack([f(row) for row in x])`, and the
    terms of `sum(f(row) for row in x)`.
    """
    rows = _list_given(node, ctx)
    if rows is None or len(rows.generators) != 1 or not ctx.is_call_of(node, *_JOINS, "sum"):
        return None
    turns = rows.generators[0]
    if turns.ifs or OVER_FEW_PARTS.search(ctx.text(turns.target)):
        return None
    if not any(isinstance(part, (ast.Call, ast.BinOp)) and not _is_size(part) for part in walk(rows.elt)):
        return None
    if isinstance(turns.target, ast.Name) and goes_over_dimension(turns.iter, ctx):
        found = _Rows((), (), turns.target.id)
    else:
        by_rows = _rows(turns.target, turns.iter, ctx)
        if by_rows is None:
            return None
        found = by_rows
    if found.number not in names_in(rows.elt) and not reads_a_row(rows.elt, found.names):
        return None
    return rows if is_same_for_all_rows(rows.elt, found.number, set(), ctx, found.names) else None


def _is_size(part: ast.expr) -> bool:
    """Whether this only asks how large something is, which reads none of it: `len(row)`."""
    return isinstance(part, ast.Call) and callee_name(part) in ("len", "size", "numel", "dim")


def _list_given(node: ast.Call, ctx: FileFacts) -> ast.ListComp | ast.GeneratorExp | None:
    """What a call is given first, also where that has a name that is read once."""
    given = node.args[0] if node.args else None
    if isinstance(given, ast.Name):
        made = ctx.inference.flow.definitions(given)
        given = made[0].value if len(made) == 1 and not made[0].path else None
        if given is None or len(ctx.inference.flow.uses_of(made[0])) != 1:
            return None
    return given if isinstance(given, (ast.ListComp, ast.GeneratorExp)) else None
