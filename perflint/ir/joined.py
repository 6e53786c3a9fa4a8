"""Sums of lists that a function writes out, as the lists that they are."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from perflint.ir.notation import value_of
from perflint.ir.summary import Value

#: What may be a list that is written out.
MAYBE_LISTS = frozenset({ast.Name, ast.List, ast.Tuple})


def joined(node: ast.BinOp, binds: Mapping[str, Iterable[Value]], depth: int) -> tuple[Value, ...]:
    """What `first + second` holds, where both are written out, by their names or not; nothing for other operands."""
    if type(node.left) not in MAYBE_LISTS or type(node.right) not in MAYBE_LISTS:
        return ()
    found: list[Value] = []
    for side in (node.left, node.right):
        value = value_of(side, depth)
        held = tuple(binds.get(value, ())) if type(value) is str else (value,)
        if len(held) != 1 or type(held[0]) is not tuple or held[0][0] != "seq":
            return ()
        found += held[0][1]
    return tuple(found)
