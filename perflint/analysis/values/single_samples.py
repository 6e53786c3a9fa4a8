"""Expressions that make or hold one sample of many: one row, one text, a batch of one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.model_calls import name_of_whole
from perflint.analysis.invariants.turn_dependence import Turning
from perflint.analysis.naming.data import TOKENIZER
from perflint.analysis.values.kind import Tag
from perflint.finding import Confidence
from perflint.ir.calls import is_constant, keyword


def makes_batch_of_one(node: ast.Call) -> bool:
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "unsqueeze":
        return False
    dim = node.args[0] if node.args else keyword(node, "dim")
    made = node.func.value
    if isinstance(made, ast.Subscript) and isinstance(made.slice, ast.Slice):
        return False  # A part of a sequence, such as all that stands before a position: TPL608.
    # A tensor of a Python list is as long as that sample is.
    return is_constant(dim, 0) and not (
        isinstance(made, ast.Call) and name_of_whole(made.func) in ("tensor", "as_tensor")
    )


def makes_tokens(node: ast.Call) -> bool:
    """`tokenizer(text, return_tensors=…)` and `model.to_tokens(text)`."""
    if isinstance(node.func, ast.Attribute) and node.func.attr == "to_tokens":
        return bool(node.args)
    return is_tokenizer_call(node)


def is_tokenizer_call(call: ast.Call) -> bool:
    """Whether a call makes tensors of texts, by its receiver's name and the option that all such calls have."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in ("encode", "encode_plus"):
        func = func.value
    if not call.args or not any(item.arg == "return_tensors" for item in call.keywords):
        return False
    return isinstance(func, (ast.Name, ast.Attribute)) and bool(TOKENIZER.search(name_of_whole(func).lower()))


def rows_of(loop: ast.For, parts: list[ast.AST]) -> Iterator[ast.Subscript]:
    """`x[i]` and `x[i : i + 1]` in a loop's `parts`, for its own `i`."""
    if not isinstance(loop.target, ast.Name):
        return
    index = loop.target.id
    for part in parts:
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load) and _is_one_row(part.slice, index):
            yield part


def is_of_module(row: ast.Subscript, ctx: FileFacts) -> bool:
    """Whether a row is one of a module's own tensors: the weights of one of its experts are no sample."""
    owner: ast.expr = row.value
    while isinstance(owner, (ast.Attribute, ast.Subscript, ast.Call)):
        owner = owner.func if isinstance(owner, ast.Call) else owner.value
        if ctx.kind(owner).tag is Tag.MODULE:
            return True
    return False


def is_of_nesting(sample: ast.expr, ctx: FileFacts) -> bool:
    """Whether a sample is `images[query][i]` out of what nobody has seen made: lists in lists hold any sizes."""
    while isinstance(sample, ast.Call) and isinstance(sample.func, ast.Attribute):
        sample = sample.func.value
    if not isinstance(sample, ast.Subscript) or not isinstance(sample.value, ast.Subscript):
        return False
    indices, kind = (sample.slice, sample.value.slice), ctx.kind(sample.value)
    return not (kind.is_tensor and kind.certainty is Confidence.HIGH) and not any(
        isinstance(index, (ast.Constant, ast.Slice, ast.Tuple)) or ctx.kind(index).tag is Tag.STRING
        for index in indices
    )


def _is_one_row(item: ast.expr, index: str) -> bool:
    if isinstance(item, ast.Tuple):
        item = item.elts[0] if item.elts else item
    if isinstance(item, ast.Name):
        return item.id == index
    if not isinstance(item, ast.Slice) or not isinstance(item.lower, ast.Name) or item.lower.id != index:
        return False
    upper = item.upper
    return (
        isinstance(upper, ast.BinOp)
        and isinstance(upper.op, ast.Add)
        and isinstance(upper.left, ast.Name)
        and upper.left.id == index
        and is_constant(upper.right, 1)
    )


def is_of_unstacked(turning: Turning, ctx: FileFacts) -> bool:
    """Whether a loop goes through what a project's `collate_fn` leaves a list in each batch: had its tensors one size,
    they would have been stacked.
    """
    rows = turning.iter
    while isinstance(rows, ast.Call) and isinstance(rows.func, ast.Name) and rows.args:
        rows = rows.args[0]  # `enumerate(images)`, `range(len(images))`
    kind = ctx.kind(rows)
    if kind.tag is not Tag.SEQUENCE or kind.certainty is Confidence.HIGH or kind.element is None:
        return False
    return kind.element.tag in (Tag.TENSOR, Tag.SEQUENCE)
