"""What a loop goes through, without its progress bar: texts, samples to look at, lists of texts."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.model_calls import name_of_whole
from perflint.analysis.invariants.turn_dependence import Turning
from perflint.analysis.naming.data import SEVERAL_TEXTS
from perflint.analysis.naming.loops import OVER_BATCHES
from perflint.analysis.naming.phases import TO_SHOW
from perflint.ir.notation import last_name

_WRAPPERS = ("enumerate", "tqdm", "zip", "list", "sorted", "reversed")
_SHOWN = frozenset({"desc", "description", "total", "unit", "leave", "disable", "ncols", "postfix"})


def handed_out(rows: ast.expr, ctx: FileFacts) -> str:
    """What a loop goes through, without what its progress bar shows: `tqdm(rows, desc="by model")`."""
    if isinstance(rows, ast.Call) and any(item.arg in _SHOWN for item in rows.keywords):
        kept = [item.value for item in rows.keywords if item.arg not in _SHOWN]
        return " ".join([ctx.text(rows.func), *(handed_out(item, ctx) for item in [*rows.args, *kept])])
    if isinstance(rows, ast.Call) and isinstance(rows.func, ast.Name) and rows.func.id in _WRAPPERS:
        return " ".join([rows.func.id, *(handed_out(item, ctx) for item in rows.args)])
    return ctx.text(rows)


def shows_each(turning: Turning, ctx: FileFacts) -> bool:
    """Whether a loop over samples or examples prints each of its turns: a handful, for a person to look at."""
    if not isinstance(turning, ast.For) or not TO_SHOW.search(handed_out(turning.iter, ctx)):
        return False
    return any(
        isinstance(item, ast.Expr)
        and isinstance(item.value, ast.Call)
        and isinstance(item.value.func, ast.Name)
        and item.value.func.id == "print"
        for item in turning.body
    )


def is_several_texts(text: ast.expr, ctx: FileFacts) -> bool:
    """Whether what is tokenized is a list of texts."""
    for item in ctx.inference.origins(text) if isinstance(text, ast.Name) else [text]:
        if isinstance(item, (ast.ListComp, ast.Tuple)) or (isinstance(item, ast.List) and len(item.elts) != 1):
            return True
        if isinstance(item, ast.Subscript) and isinstance(item.slice, ast.Slice):
            return True
    return isinstance(text, (ast.Name, ast.Attribute)) and bool(SEVERAL_TEXTS.search(last_name(text)))


def hands_out_parts(turning: Turning, ctx: FileFacts) -> bool:
    target, rows = ctx.text(turning.target), turning.iter
    if isinstance(rows, ast.Call) and isinstance(rows.func, ast.Name) and rows.func.id in ("enumerate", "tqdm"):
        rows = rows.args[0] if rows.args else rows
    if isinstance(rows, (ast.Name, ast.Attribute)) and name_of_whole(rows) in ("batch", "minibatch", "batch_samples"):
        return bool(OVER_BATCHES.search(target))
    return bool(OVER_BATCHES.search(target) or OVER_BATCHES.search(handed_out(turning.iter, ctx)))
