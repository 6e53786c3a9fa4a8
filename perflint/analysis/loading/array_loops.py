"""Loops that go through a host array in Python: element by element, or once over the whole array for each class. Asked
by the rule about the samples of data sets.
"""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.trip_count import most_turns
from perflint.analysis.values.element_loops import is_compiled
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk

#: Fewer iterations cost less than what an operation on whole arrays sets up.
_FEW = 8
#: What an element is computed with that arrays have as well.
_OF_ELEMENTS = frozenset(
    "int float bool abs fabs hypot min max round len range exp sqrt log pow sin cos floor ceil".split()
)


def filled_by_element(loop: ast.For, ctx: FileFacts) -> ast.Subscript | None:
    """`picture[y, x]` of two loops over numbers, the one in the other, that compute one element after the other from
    numbers and from the same element of arrays.
    """
    inner = next((item for item in loop.body if isinstance(item, ast.For)), None)
    if inner is None or not (_counts(loop, ctx) and _counts(inner, ctx)) or is_compiled(loop, ctx):
        return None
    names = {part.id for item in (loop.target, inner.target) for part in walk(item) if isinstance(part, ast.Name)}
    counted = ctx.inference.flow.names_written(loop) - names
    stores = [part for part in walk(inner) if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store)]
    element = next((item for item in stores if _is_element(item, names, counted)), None)
    if element is None or ctx.kind(element.value).on_accelerator:
        return None
    if any(isinstance(part, ast.Call) and callee_name(part) not in _OF_ELEMENTS for part in walk(inner)):
        return None
    array = ctx.text(element.value)
    others = [part for part in walk(loop) if isinstance(part, ast.Subscript) and ctx.text(part.value) == array]
    return element if all(_place(part, ctx) == _place(element, ctx) for part in others) else None


def _place(item: ast.Subscript, ctx: FileFacts) -> list[str]:
    """Where an element is, but for the channel that a literal names."""
    parts = item.slice.elts if isinstance(item.slice, ast.Tuple) else [item.slice]
    return [ctx.text(part) for part in parts if not isinstance(part, ast.Constant)]


def _counts(loop: ast.For, ctx: FileFacts) -> bool:
    if not (isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "range"):
        return False
    turns = most_turns(loop, ctx)
    return turns is None or turns >= _FEW


def _is_element(item: ast.Subscript, names: set[str], counted: frozenset[str]) -> bool:
    """`x[i, j]`: an index of an array, by all of the loops' names and by none that the loops count up."""
    if not isinstance(item.slice, ast.Tuple) or any(isinstance(part, ast.Slice) for part in item.slice.elts):
        return False
    used = {part.id for part in walk(item.slice) if isinstance(part, ast.Name)}
    return names <= used and counted.isdisjoint(used)


def masked_by_class(loop: ast.For, ctx: FileFacts) -> ast.Subscript | None:
    """`out[labels == number]` that a loop over numbers sets to what goes with the number, each time by a comparison of
    the whole array.
    """
    turns = most_turns(loop, ctx)
    if turns is not None and turns < _FEW:
        return None
    names = {part.id for part in walk(loop.target) if isinstance(part, ast.Name)}
    for statement in loop.body:
        for part in [statement, *(statement.body if isinstance(statement, ast.If) else ())]:
            target = part.targets[0] if isinstance(part, ast.Assign) else None
            if not isinstance(target, ast.Subscript) or not _compares_with_turn(target.slice, names, loop, ctx):
                continue
            # A set of numbers that all become one is compared number by number in numpy as well.
            if names.isdisjoint(item.id for item in walk(part.value) if isinstance(item, ast.Name)):
                return None
            return None if ctx.kind(target.value).on_accelerator else target
    return None


def _compares_with_turn(index: ast.expr, names: set[str], loop: ast.For, ctx: FileFacts) -> bool:
    if isinstance(index, ast.Call) and callee_name(index) in ("where", "nonzero") and len(index.args) == 1:
        index = index.args[0]
    if not (isinstance(index, ast.Compare) and len(index.ops) == 1 and isinstance(index.ops[0], ast.Eq)):
        return False
    array, number = index.left, index.comparators[0]
    if not isinstance(array, (ast.Name, ast.Attribute)):
        return False
    turning = {part.id for part in walk(number) if isinstance(part, ast.Name)} & names
    written = ctx.inference.flow.names_written(loop)
    return bool(turning) and not any(isinstance(part, ast.Name) and part.id in written for part in walk(array))
