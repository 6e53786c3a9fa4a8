"""What the text of an expression tells of a tensor beside the kinds of its parts: the rank of `x[:, i, None]`, and the
type of `positions - 1`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from perflint.analysis.values.dtypes import Dtype
from perflint.analysis.values.kind import Kind, Tag
from perflint.analysis.values.ranks import cut

_KEEPS_INTEGERS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift)


def rank_of_cut(index: ast.Tuple, rank: int | None, kind_of: Callable[[ast.expr], Kind]) -> int | None:
    """None where a part is neither a slice nor known to be a number: positions select in ways of their own."""
    if rank is None:
        return None
    numbers = added = 0
    for part in index.elts:
        if isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is Ellipsis):
            continue
        if isinstance(part, ast.Constant) and part.value is None:
            added += 1
        elif not isinstance(part, ast.Starred) and kind_of(part).tag is Tag.NUMBER:
            numbers += 1
        else:
            return None
    return cut(rank, numbers=numbers, added=added)


def with_literal(made: Kind, node: ast.BinOp, kind_of: Callable[[ast.expr], Kind]) -> Kind:
    """A tensor of integers stays one beside a whole number; beside another number, its kind does not tell."""
    if not made.is_tensor or made.dtype is not None or not isinstance(node.op, _KEEPS_INTEGERS):
        return made
    for literal, other in ((node.right, node.left), (node.left, node.right)):
        if isinstance(literal, ast.Constant) and type(literal.value) is int and kind_of(other).dtype is Dtype.INT:
            return made.but(dtype=Dtype.INT)
    return made
