"""Functions that take values of the host and give values of the host: an action for an observation, a distance matrix.

Whoever calls one waits for its answer in any case, so that a copy to the device at its beginning takes nothing away but
the time in which the first kernels could have been launched.
"""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.kind import Kind, Place, Tag
from perflint.ir.calls import is_constant
from perflint.syntax.walk import walk_own
from perflint.torch_model.effects import Effect

_TRAINS = (Effect.BACKWARD, Effect.STEPS)
_READS = (Effect.READS, Effect.WAITS)
#: Tags of values that are on the host whatever they were made of.
_OF_HOST = (Tag.ARRAY, Tag.NUMBER)


def answers_on_host(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the function around `node`, which is in none of its loops, trains nothing and gives arrays, numbers or
    tensors of the host wherever it returns, read from the device.
    """
    function = ctx.tree.function_of(node)
    if not isinstance(function, ast.FunctionDef) or ctx.loops(node):
        return False
    return ctx.once(_answers, function)


def _answers(function: ast.FunctionDef, ctx: FileFacts) -> bool:
    parts = list(walk_own(function))
    if any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in parts):
        return False
    given = [part.value for part in parts if isinstance(part, ast.Return)]
    values = [value for value in given if value is not None and not is_constant(value, None)]
    if not values or not all(_is_on_host(ctx.kind(value)) for value in values):
        return False
    effects = ctx.program.effects(ctx.scope(function.body[0]))
    return effects.does(*_READS) and not effects.does(*_TRAINS)


def _is_on_host(kind: Kind) -> bool:
    if kind.tag in _OF_HOST:
        return kind.place is not Place.DEVICE
    if kind.items:
        return all(_is_on_host(item) for _, item in kind.items)
    return kind.place is Place.HOST
