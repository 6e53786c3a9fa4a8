"""What a name of a loop is an element of, seen through what pairs, counts or reorders them. Pure, over `ast`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from perflint.ir.calls import callee_name

#: What gives the elements of its first argument, one by one.
_PASSING = frozenset({"iter", "list", "tuple", "reversed", "sorted", "tqdm"})


def taken_from(turns: ast.expr, path: Sequence[int | str]) -> ast.expr | None:
    """`places` of `for place in places`, `for i, place in enumerate(places)` and `for i, (place, other) in
    enumerate(zip(places, others))`, where `path` leads from what a turn gives to the name. None for a part of an
    element.
    """
    while isinstance(turns, ast.Call) and turns.args and not any(isinstance(item, ast.Starred) for item in turns.args):
        name = callee_name(turns)
        if name in _PASSING:
            turns = turns.args[0]
        elif name == "enumerate" and path[:1] == (1,):
            turns, path = turns.args[0], path[1:]
        elif name == "zip" and path and isinstance(path[0], int) and 0 <= path[0] < len(turns.args):
            turns, path = turns.args[path[0]], path[1:]
        else:
            break
    return None if path else turns
