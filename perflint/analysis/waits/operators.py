"""Numbers that a matrix of linear_operator copies to the device where it is multiplied by one, or has one added."""

from __future__ import annotations

import ast
from typing import NamedTuple

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.kind import Tag
from perflint.analysis.waits.accelerators import uses_accelerator
from perflint.analysis.waits.reads import is_unknown_in_step
from perflint.ir.calls import argument, callee_name
from perflint.torch_model import linear_operators

#: The names of the methods that copy it.
NUMBER_METHODS = tuple(linear_operators.COPYING_METHODS)
#: What a module gives, or is given, is taken for a tensor where nothing tells of a matrix.
_GIVEN = (Tag.OUTPUT, Tag.TENSOR)


class GivenNumber(NamedTuple):
    """The matrix, the number as it is written, and the method that takes a tensor in its place."""

    matrix: ast.expr
    number: str
    instead: str


def given_number(call: ast.Call, ctx: FileFacts) -> GivenNumber | None:
    """`covariance.add_jitter(1e-4)`, `covariance.mul(-1)` of a matrix that is as far as can be told on the device."""
    name = callee_name(call)
    instead = linear_operators.COPYING_METHODS.get(name)
    if instead is None or not isinstance(call.func, ast.Attribute):
        return None
    matrix = call.func.value
    if not _is_operator(call.func, ctx) or not _is_on_device(matrix, ctx):
        return None
    number = argument(call, 0, "jitter_val" if name == "add_jitter" else "other")
    if number is None:
        return GivenNumber(matrix, linear_operators.JITTER, instead) if name == "add_jitter" else None
    return GivenNumber(matrix, ctx.text(number), instead) if ctx.kind(number).tag is Tag.NUMBER else None


def _is_on_device(matrix: ast.expr, ctx: FileFacts) -> bool:
    kind = ctx.kind(matrix)
    if kind.tag in _GIVEN and kind.place.is_accelerator:
        return uses_accelerator(ctx)  # what a module gave may be such a matrix, and then is where the module is
    return is_unknown_in_step(matrix, kind, ctx, (Tag.INSTANCE,))


def _is_operator(method: ast.Attribute, ctx: FileFacts) -> bool:
    """Whether the method is that of a matrix of the library, or one that nothing else in a file that works with the
    library has.
    """
    target = ctx.target(method)
    if target is not None:
        return target.partition(".")[0] in linear_operators.LIBRARIES
    if method.attr not in linear_operators.OWN_METHODS or ctx.refs(method):
        return False
    if ctx.kind(method.value).tag not in (Tag.UNKNOWN, *_GIVEN):
        return False
    return any(item.partition(".")[0] in linear_operators.LIBRARIES for item in ctx.summary.imports.values())
