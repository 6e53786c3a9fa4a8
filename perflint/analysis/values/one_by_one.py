"""Samples that take elements or rows of tensors one index at a time, where one index takes all of them. Asked by the
rule about the samples of data sets.
"""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.few_turns import turns_few_times
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk

#: What leaves a row as it is, but for its shape, and what only tensors have of it.
_SHAPES = frozenset({"view", "unsqueeze", "reshape", "clone", "contiguous"})
_OF_TENSORS = frozenset({"view", "unsqueeze", "clone"})
#: What makes one tensor of the rows of a list.
_JOINS = frozenset({"cat", "stack", "concat", "concatenate", "vstack", "hstack"})
#: What makes a tensor.
_MAKERS = frozenset({"tensor", "as_tensor", "from_numpy", "zeros", "ones", "full"})


def read_one_by_one(rows: ast.ListComp | ast.SetComp | ast.GeneratorExp, ctx: FileFacts) -> str | None:
    """The tensor of which a list holds numbers, each read by itself: `[x[0, i].item() for i in range(n)]`."""
    turns = rows.generators[0]
    if len(rows.generators) != 1 or not isinstance(turns.target, ast.Name) or turns_few_times(turns, ctx):
        return None
    for part in walk(rows.elt):
        if isinstance(part, ast.Call) and callee_name(part) == "item" and isinstance(part.func, ast.Attribute):
            item = part.func.value
            while isinstance(item, ast.Call) and callee_name(item) == "cpu" and isinstance(item.func, ast.Attribute):
                item = item.func.value
            if isinstance(item, ast.Subscript) and _is_index(item.slice, turns.target.id) and _is_kept(item.value, ctx):
                return ctx.text(item.value)
    return None


def _is_index(index: ast.expr, name: str) -> bool:
    places = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(isinstance(item, ast.Name) and item.id == name for item in places)


def _is_kept(array: ast.expr, ctx: FileFacts) -> bool:
    """Whether an array has a name that may be that of a tensor on the host."""
    if not isinstance(array, (ast.Name, ast.Attribute)):
        return False
    kind = ctx.kind(array)
    return kind.tag in (Tag.TENSOR, Tag.ARRAY, Tag.UNKNOWN) and not kind.on_accelerator


def indexed_one_by_one(loop: ast.For, ctx: FileFacts) -> str | None:
    """The tensor of which a loop takes or sets one row after the other: `rows.append(x[i].view(1, -1))` of rows that
    are joined afterwards, and `x[i] = torch.tensor([0, 1])`.
    """
    if len(loop.body) != 1 or loop.orelse or not isinstance(loop.target, ast.Name) or turns_few_times(loop, ctx):
        return None
    statement, index = loop.body[0], loop.target.id
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return _gathered(statement.value, index, loop, ctx)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return _set(statement.targets[0], statement.value, index, ctx)
    return None


def _gathered(call: ast.Call, index: str, loop: ast.For, ctx: FileFacts) -> str | None:
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr != "append" or not call.args:
        return None
    if not isinstance(func.value, ast.Name):
        return None
    row, is_tensor = call.args[0], False
    while isinstance(row, ast.Call) and isinstance(row.func, ast.Attribute) and row.func.attr in _SHAPES:
        is_tensor = is_tensor or row.func.attr in _OF_TENSORS
        row = row.func.value
    if not (isinstance(row, ast.Subscript) and isinstance(row.slice, ast.Name) and row.slice.id == index):
        return None
    if not _is_kept(row.value, ctx) or not (is_tensor or ctx.kind(row.value).tag in (Tag.TENSOR, Tag.ARRAY)):
        return None
    return ctx.text(row.value) if _is_joined(func.value.id, loop, ctx) else None


def _is_joined(name: str, loop: ast.For, ctx: FileFacts) -> bool:
    return any(
        isinstance(part, ast.Call)
        and callee_name(part) in _JOINS
        and bool(part.args)
        and isinstance(part.args[0], ast.Name)
        and part.args[0].id == name
        for part in ctx.tree.walk(ctx.tree.scope_of(loop))
    )


def _set(target: ast.expr, value: ast.expr, index: str, ctx: FileFacts) -> str | None:
    if not (isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Name) and target.slice.id == index):
        return None
    if not (isinstance(value, ast.Call) and callee_name(value) in _MAKERS and _is_kept(target.value, ctx)):
        return None
    if any(isinstance(part, ast.Name) and part.id == index for part in walk(value)):
        return None
    return ctx.text(target.value) if (ctx.target(value.func) or "").startswith("torch.") else None
