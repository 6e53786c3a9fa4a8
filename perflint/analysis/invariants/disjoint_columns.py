"""Columns of a table that are never the same: `table[rows, 0:3]` and `table[rows, 3]`."""

from __future__ import annotations

import ast

from perflint.ir.calls import is_constant

__all__ = ["are_disjoint"]

#: A table has rows and columns.
_DIMENSIONS = 2


def are_disjoint(one: ast.Subscript, other: ast.Subscript) -> bool:
    """Whether two parts of a table certainly share no column: their last indices are written out."""
    first, second = _indices(one), _indices(other)
    if len(first) != len(second) or len(first) < _DIMENSIONS or _table(one) != _table(other):
        return False
    mine, its = _columns(first[-1]), _columns(second[-1])
    return mine is not None and its is not None and mine.isdisjoint(its)


def _table(part: ast.Subscript) -> str:
    """The table as it is written, whether it is read or written."""
    return ast.unparse(part.value)


def _indices(part: ast.Subscript) -> list[ast.expr]:
    return part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]


def _columns(index: ast.expr) -> frozenset[int] | None:
    """The columns of an index that counts from the first one; None where it does not say which."""
    if isinstance(index, ast.Constant) and type(index.value) is int and index.value >= 0:
        return frozenset({index.value})
    if not isinstance(index, ast.Slice) or index.step is not None or not isinstance(index.upper, ast.Constant):
        return None
    start = 0 if index.lower is None or is_constant(index.lower, 0) else getattr(index.lower, "value", None)
    stop = index.upper.value
    return frozenset(range(start, stop)) if type(start) is int and type(stop) is int and 0 <= start <= stop else None
