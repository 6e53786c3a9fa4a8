"""Names that a test asks of. What they are given where it holds, `if mask is not None: mask = mask[0]`, is given to no
name that fails it: to one that is always None, nothing.
"""

from __future__ import annotations

import ast

from perflint.ir.computed import expression
from perflint.ir.notation import path_of
from perflint.ir.summary import Value

#: No value at all.
NEVER: Value = ("either", ())


def tested_names(test: ast.expr, *, truth: bool) -> dict[str, Value]:
    """The names, and attributes of `self`, that each hold, or fail, a test of their own where a test comes to that."""
    kind = type(test)
    if kind is ast.BoolOp:
        if (type(test.op) is ast.And) is not truth:  # type: ignore[attr-defined]
            return {}
        found: dict[str, Value] = {}
        for part in test.values:  # type: ignore[attr-defined]
            found.update(tested_names(part, truth=truth))
        return found
    if kind is ast.UnaryOp:
        is_not = type(test.op) is ast.Not  # type: ignore[attr-defined]
        return tested_names(test.operand, truth=not truth) if is_not else {}  # type: ignore[attr-defined]
    name = _name(test)
    if name is None and kind is ast.Compare and type(test.comparators[0]) is ast.Constant:  # type: ignore[attr-defined]
        name = _name(test.left) if len(test.ops) == 1 else None  # type: ignore[attr-defined]
    asked = expression(test) if name is not None else None
    return {} if name is None or asked is None else {name: asked if truth else ("not", asked)}


def given_where(asked: Value, value: Value) -> Value:
    """What is given where a test of the name itself holds."""
    return ("if", asked, value, NEVER)


def _name(node: ast.expr) -> str | None:
    if type(node) is ast.Name:
        return node.id
    if type(node) is not ast.Attribute:
        return None
    path = path_of(node)
    return path if path is not None and path.startswith("self.") and path.count(".") == 1 else None
