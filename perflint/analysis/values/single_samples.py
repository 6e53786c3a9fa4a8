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
from perflint.ir.calls import callee_name, is_constant, keyword, of_tensor


def makes_batch_of_one(node: ast.Call) -> bool:
    taken = of_tensor(node) if callee_name(node) == "unsqueeze" else None
    if taken is None:
        return False
    made, given = taken
    dim = given[0] if given else keyword(node, "dim")
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


def rows_of(loop: ast.For, parts: list[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`x[i]` and `x[i : i + 1]` in a loop's `parts` for its own `i`, and `row` of `for row in x`, each with its `x`."""
    if isinstance(loop.target, ast.Name):
        index = loop.target.id
        for part in parts:
            if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load) and _is_one_row(part.slice, index):
                yield part, part.value
    through = dict(_gone_through(loop.target, loop.iter))
    for part in parts if through else ():
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id in through:
            yield part, through[part.id]


def _gone_through(target: ast.expr, turns: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """What the names of a loop go through: `rows` of `for i, row in enumerate(rows)` and of `rows.split(1)`."""
    if isinstance(target, ast.Name):
        whole = _cut_into_rows(turns)
        if isinstance(whole, (ast.Name, ast.Attribute)):
            yield target.id, whole
    elif isinstance(target, ast.Tuple) and isinstance(turns, ast.Call) and isinstance(turns.func, ast.Name):
        if turns.func.id == "enumerate" and len(target.elts) == 2 and turns.args:
            yield from _gone_through(target.elts[1], turns.args[0])
        elif turns.func.id == "zip":
            for part, given in zip(target.elts, turns.args):
                yield from _gone_through(part, given)


def _cut_into_rows(turns: ast.expr) -> ast.expr:
    """`x` of `x.split(1)`, `torch.split(x, 1, dim=0)` and `x.unbind()`; anything else stands for itself."""
    if not isinstance(turns, ast.Call) or not isinstance(turns.func, ast.Attribute):
        return turns
    name, dim, taken = turns.func.attr, keyword(turns, "dim"), of_tensor(turns)
    if name not in ("split", "unbind") or not (dim is None or is_constant(dim, 0)) or taken is None:
        return turns
    whole, rest = taken
    if name == "split":
        if not rest or not is_constant(rest[0], 1):
            return turns
        rest = rest[1:]
    return whole if all(is_constant(item, 0) for item in rest) else turns


def is_row_of_tensor(row: ast.expr, whole: ast.expr, ctx: FileFacts) -> bool:
    """Whether a sample is a row of a tensor that is no module's own, nor one of a list in a list."""
    return ctx.kind(whole).tag is Tag.TENSOR and not is_of_module(whole, ctx) and not is_of_nesting(row, ctx)


def is_of_module(whole: ast.expr, ctx: FileFacts) -> bool:
    """Whether rows are of a module's own tensors: the weights of one of its experts are no sample."""
    owner = whole
    while isinstance(owner, (ast.Attribute, ast.Subscript, ast.Call)):
        owner = owner.func if isinstance(owner, ast.Call) else owner.value
        if ctx.kind(owner).tag is Tag.MODULE:
            return True
    return False


def is_of_nesting(sample: ast.expr, ctx: FileFacts) -> bool:
    """Whether a sample is `images[query][i]` out of what nobody has seen made: lists in lists hold any sizes."""
    while isinstance(sample, ast.Call) and (taken := of_tensor(sample)) is not None:
        sample = taken[0]
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
