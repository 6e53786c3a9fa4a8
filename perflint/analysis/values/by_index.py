"""Loops and lists that compute a tensor one index at a time, as one operation would compute all of it."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.over_dimensions import goes_over_dimension
from perflint.analysis.naming.loops import OVER_FEW_PARTS
from perflint.analysis.phases.loop_purpose import names_in
from perflint.analysis.values.kind import Tag
from perflint.analysis.values.row_by_row import computed_by_rows, is_same_for_all_rows
from perflint.analysis.values.spans import fills_spans
from perflint.syntax.walk import walk


def computed_by_index(loop: ast.For, ctx: FileFacts) -> str | None:
    """The tensor that a loop computes one index or span at a time, each without the others."""
    if not isinstance(loop.target, ast.Name) or loop.orelse or OVER_FEW_PARTS.search(ctx.text(loop.target)):
        return None
    if goes_over_dimension(loop.iter, ctx):
        return computed_by_rows(loop, loop.target.id, ctx)
    return fills_spans(loop, ctx)


def stacked_rows(node: ast.Call, ctx: FileFacts) -> ast.ListComp | None:
    """The list of `torch.stack([f(x[i]) for i in range(len(x))])` and of `torch.stack([f(row) for row in x])`."""
    rows = node.args[0] if node.args else None
    if not isinstance(rows, ast.ListComp) or len(rows.generators) != 1 or not ctx.is_call_of(node, "torch.stack"):
        return None
    turns = rows.generators[0]
    if turns.ifs or not isinstance(turns.target, ast.Name):
        return None
    index = turns.target.id
    goes_through = ctx.kind(turns.iter).tag is Tag.TENSOR and not OVER_FEW_PARTS.search(ctx.text(turns.iter))
    if OVER_FEW_PARTS.search(index) or not (goes_through or goes_over_dimension(turns.iter, ctx)):
        return None
    of_rows = (index,) if goes_through else ()
    works = any(isinstance(part, (ast.Call, ast.BinOp)) for part in walk(rows.elt))
    if not works or index not in names_in(rows.elt):
        return None
    return rows if is_same_for_all_rows(rows.elt, index, set(), ctx, of_rows) else None
