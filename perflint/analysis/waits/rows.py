"""Reads that take a tensor to the host row by row, in a loop that leaves the tensor as it is: one copy would do."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.few_turns import turns_few_times
from perflint.analysis.invariants.in_loops import is_fixed
from perflint.finding import Heat
from perflint.torch_model import tensors


def whole_of_rows(value: ast.expr, ctx: FileFacts) -> ast.expr | None:
    """The tensor of which a read takes a row in each iteration of an inner loop: `out` of `out[i]`; None for others."""
    loops = ctx.loops(value)
    if not loops or ctx.body_heat(loops[0]) < Heat.STEP or ctx.is_root_loop(loops[0]):
        return None  # each iteration has a tensor of its own
    if turns_few_times(loops[0], ctx):
        return None
    row = value
    while (
        isinstance(row, ast.Call)
        and isinstance(row.func, ast.Attribute)
        and row.func.attr in tensors.SAME_NUMBERS_METHODS
    ):
        row = row.func.value
    if isinstance(row, ast.Name):
        return _gone_through(row, loops[0])
    if not isinstance(row, ast.Subscript) or not isinstance(row.value, (ast.Name, ast.Attribute)):
        return None
    return row.value if is_fixed(row.value, loops[0], ctx) and not is_fixed(row.slice, loops[0], ctx) else None


def _gone_through(row: ast.Name, loop: ast.AST) -> ast.expr | None:
    """`out` of `for row in out`, `for i, row in enumerate(out)` and `for key, row in zip(keys, out)`."""
    if not isinstance(loop, ast.For):
        return None
    target, turns = loop.target, loop.iter
    if isinstance(turns, ast.Call) and isinstance(turns.func, ast.Name) and isinstance(target, ast.Tuple):
        places = [place for place, item in enumerate(target.elts) if isinstance(item, ast.Name) and item.id == row.id]
        given = turns.args[places[0] - (turns.func.id == "enumerate") :] if places else []
        is_pair = turns.func.id in ("enumerate", "zip") and bool(given)
        target, turns = (ast.Name(row.id), given[0]) if is_pair else (target, turns)
    is_row = isinstance(target, ast.Name) and target.id == row.id
    return turns if is_row and isinstance(turns, (ast.Name, ast.Attribute)) else None
