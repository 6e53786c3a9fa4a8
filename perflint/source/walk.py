"""Going through syntax trees quickly: only the fields that hold nodes are looked at, once per class of node.

`ast.walk` looks at every field of every node, and half of the nodes it gives are contexts (`ast.Load`) and operators.
"""

from __future__ import annotations

import ast

_AST = ast.AST
#: Fields that hold names, numbers and flags, or the nodes that stand for a bare operator or context.
_NO_NODES = frozenset(
    "id attr arg ctx op ops module level is_async simple conversion asname type_comment type_ignores kind tag rest "
    "cls kwd_attrs".split()
)
_LEAVES = (ast.Constant, ast.Global, ast.Nonlocal, ast.Pass, ast.Break, ast.Continue, ast.alias)


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of a class of nodes that may hold nodes."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        names: tuple[str, ...] = ()
        if not issubclass(kind, _LEAVES):
            # The class of a `match` pattern is an expression; that of a handler or name is not a field of this name.
            kept = _NO_NODES - {"cls"} if kind is ast.MatchClass else _NO_NODES
            names = tuple(name for name in kind._fields if name not in kept)
        self[kind] = names
        return names


_FIELDS = _Fields()


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below `node` in the order of its fields, without contexts and operators."""
    found: list[ast.AST] = []
    for name in _FIELDS[node.__class__]:
        value = getattr(node, name, None)
        if value.__class__ is list:
            found += [item for item in value if isinstance(item, _AST)]
        elif isinstance(value, _AST):
            found.append(value)
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """`node` and all below it, without contexts and operators; outer before inner, in the order of the source."""
    found: list[ast.AST] = []
    stack = [node]
    while stack:
        current = stack.pop()
        found.append(current)
        below = children(current)
        below.reverse()
        stack += below
    return found
