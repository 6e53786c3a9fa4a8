"""Calls in a loop that are one step of a recurrence over a sequence that is known before the loop."""

from __future__ import annotations

import ast

from perflint.analysis.invariants.turn_dependence import feeds_itself, needed
from perflint.ir.calls import argument
from perflint.syntax.walk import walk


def steps_through(call: ast.Call, loop: ast.For) -> bool:
    """Whether the input is there before the loop, and the state goes from turn to turn through the cell only."""
    given, state = argument(call, 0, "input"), argument(call, 1, "hx")
    if given is None or state is None or feeds_itself(call, loop, [given]):
        return False
    turning = {part.id for part in walk(loop.target) if isinstance(part, ast.Name)}
    if turning & {part.id for part in walk(call.func) if isinstance(part, ast.Name)}:
        return False  # Another cell on each turn: a stack of layers.
    if not turning & needed(given, loop)[0] or not _is_by_position(given, turning, loop):
        return False
    carried = {part.id for part in walk(state) if isinstance(part, ast.Name)}
    return bool(carried) and all(_values(name, loop) == [call] for name in carried)


def _is_by_position(given: ast.expr, turning: set[str], loop: ast.For) -> bool:
    """Whether a turn's input is an element of the sequence: the loop's own, or the one at its index."""
    counts = isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "range"
    if not counts:
        return True
    for part in needed(given, loop)[1]:
        for item in walk(part):
            if isinstance(item, ast.Subscript) and any(
                isinstance(name, ast.Name) and name.id in turning for name in walk(item.slice)
            ):
                return True
    return False


def _values(name: str, loop: ast.For) -> list[ast.expr]:
    """What a loop sets a name to."""
    found: list[ast.expr] = []
    for part in walk(loop):
        targets: list[ast.expr] = []
        value: ast.expr | None = None
        if isinstance(part, ast.Assign):
            targets, value = part.targets, part.value
        elif isinstance(part, (ast.AugAssign, ast.AnnAssign)):
            targets, value = [part.target], part.value
        if value is not None and any(name in _set_by(target) for target in targets):
            found.append(value)
    return found


def _set_by(target: ast.expr) -> set[str]:
    """The names that a target sets, or into which it stores."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return {name for item in target.elts for name in _set_by(item)}
    while isinstance(target, (ast.Subscript, ast.Attribute, ast.Starred)):
        target = target.value
    return {target.id} if isinstance(target, ast.Name) else set()
