"""Which values are Python numbers, lists of them and arrays: data of the host that a tensor is made of."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.kind import Kind, Tag
from perflint.finding import Confidence
from perflint.syntax.bindings import key_of

_PLAIN = (Tag.NUMBER, Tag.ARRAY, Tag.SHAPE)
_DISPLAYS = (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp)
_LITERALS = (ast.Constant, ast.List, ast.Tuple)
_DEPTH = 4


def is_written_out(data: ast.expr, ctx: FileFacts) -> bool:
    """Whether data are numbers, or lists that are written where the tensor is made: no array by name."""
    if isinstance(data, ast.UnaryOp):
        data = data.operand
    return isinstance(data, _LITERALS) or ctx.kind(data).tag is Tag.NUMBER


def certainty_of_host(data: ast.expr, ctx: FileFacts, depth: int = _DEPTH) -> Confidence | None:
    """How sure it is that data is numbers and arrays of the host."""
    if isinstance(data, _DISPLAYS) and depth:
        items = data.elts if isinstance(data, (ast.List, ast.Tuple)) else [data.elt]
        found = [certainty_of_host(item, ctx, depth - 1) for item in items]
        return min((item for item in found if item is not None), default=None) if None not in found else None
    certainty = _certainty_of_kind(ctx.kind(data), depth)
    return Confidence.MEDIUM if certainty is None and _is_no_tensor(data, ctx) else certainty


def _is_no_tensor(data: ast.expr, ctx: FileFacts) -> bool:
    """Whether a test on the way has found something unknown to be no tensor: `if not isinstance(mean, Tensor)`."""
    written = key_of(data)
    if written is None or ctx.kind(data).known:
        return False
    return any(
        isinstance(test, ast.Call) and not truth and _asks_for_tensor(test, written, ctx)
        for test, truth in ctx.control_flow(data).conditions(data)
    )


def _asks_for_tensor(test: ast.Call, written: str, ctx: FileFacts) -> bool:
    """`isinstance(x, Tensor)`, `torch.is_tensor(x)`"""
    if not test.args or key_of(test.args[0]) != written:
        return False
    name = ctx.inference.qualified(test.func)
    if name == "builtins.isinstance" and len(test.args) == 2:
        return ctx.inference.qualified(test.args[1]) == "torch.Tensor"
    return name == "torch.is_tensor"


def _certainty_of_kind(kind: Kind, depth: int) -> Confidence | None:
    if kind.certainty is Confidence.LOW:
        return None
    if kind.tag in _PLAIN:
        return kind.certainty
    if kind.tag is Tag.SEQUENCE and kind.element is not None and depth:
        return _certainty_of_kind(kind.element, depth - 1)
    return None
