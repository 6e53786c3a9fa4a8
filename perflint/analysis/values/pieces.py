"""Loops that put together anew what they cut from something that is there already."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from perflint.analysis.phases.loop_purpose import names_in
from perflint.ir.calls import callee_name
from perflint.syntax.named import is_name
from perflint.syntax.walk import walk


def are_moved_over(added: Iterable[ast.expr], loop: ast.stmt) -> bool:
    """Whether the parts are cut from what is there already, and there are few cuts: off the front of something that is
    cut as well (`rest = rest[:, n:]`), or evenly (`data[:, i::n]` for each `i` in `range(n)`).
    """
    cuts = [_slice_of(part, loop) for part in added]
    return all(cut is not None and (_is_cut_off(cut, loop) or _is_even(cut, loop)) for cut in cuts)


def are_elements(added: Iterable[ast.expr], loop: ast.stmt) -> bool:
    """Whether a loop joins what a list holds already, one after the other: `for i in range(1, len(parts))` with
    `parts[i]`, or `for part in parts`.
    """
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
        return False
    turn = loop.target.id
    if isinstance(loop.iter, ast.Call):
        return callee_name(loop.iter) == "range" and all(
            isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name) and is_name(part.slice, turn)
            for part in added
        )
    return isinstance(loop.iter, (ast.Name, ast.Attribute)) and all(is_name(part, turn) for part in added)


def _slice_of(part: ast.expr, loop: ast.stmt) -> ast.Subscript | None:
    """The slice that is added, also by the name that the loop gives to it once."""
    if isinstance(part, ast.Name):
        bound = [
            value
            for item in walk(loop)
            if isinstance(item, ast.Assign) and len(item.targets) == 1
            for target, value in _paired(item.targets[0], item.value)
            if is_name(target, part.id)
        ]
        return bound[0] if len(bound) == 1 and isinstance(bound[0], ast.Subscript) else None
    return part if isinstance(part, ast.Subscript) else None


def _paired(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """What each target is bound to: `a, b = x, y` binds two."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts))
    return [(target, value)]


def _is_cut_off(cut: ast.Subscript, loop: ast.stmt) -> bool:
    """`queue[:, :n]`, where the loop binds `queue = queue[:, n:]`."""
    if not any(item.lower is None and item.upper is not None for item in _slices(cut)):
        return False
    whole = cut.value
    return isinstance(whole, ast.Name) and any(
        is_name(target, whole.id)
        and isinstance(value, ast.Subscript)
        and is_name(value.value, whole.id)
        and any(part.lower is not None and part.upper is None for part in _slices(value))
        for item in walk(loop)
        if isinstance(item, ast.Assign) and len(item.targets) == 1
        for target, value in _paired(item.targets[0], item.value)
    )


def _is_even(cut: ast.Subscript, loop: ast.stmt) -> bool:
    """`data[:, i::n]`, and `data[:, size * i : size * (i + 1)]`, for `i` in `range(n)`."""
    if not (isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) and isinstance(loop.iter, ast.Call)):
        return False
    if callee_name(loop.iter) != "range" or len(loop.iter.args) != 1:
        return False
    turn, turns = loop.target.id, ast.dump(loop.iter.args[0])
    for item in _slices(cut):
        if item.lower is None:
            continue
        if is_name(item.lower, turn) and item.upper is None and item.step and ast.dump(item.step) == turns:
            return True
        ends = [_factors(item.lower), _factors(item.upper)]
        sizes = [[ast.dump(part) for part in end if turn not in names_in(part)] for end in ends]
        if all(len(end) == 2 for end in ends) and len(sizes[0]) == 1 and sizes[0] == sizes[1]:
            return True
    return False


def _factors(end: ast.expr | None) -> list[ast.expr]:
    return [end.left, end.right] if isinstance(end, ast.BinOp) and isinstance(end.op, ast.Mult) else []


def _slices(cut: ast.Subscript) -> list[ast.Slice]:
    parts = cut.slice.elts if isinstance(cut.slice, ast.Tuple) else [cut.slice]
    return [part for part in parts if isinstance(part, ast.Slice)]
