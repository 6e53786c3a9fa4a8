"""Guards that fill what a call gave: `if result.labels is None: result.labels = ...` is lazy where the call hands out
what it keeps, and no guard at all where each call makes its result.
"""

from __future__ import annotations

import ast

from perflint.ir import guards
from perflint.ir.growing import Growing
from perflint.ir.questions import Question


def asked_of_result(test: ast.expr, body: list[ast.stmt], context: int, scope: Growing) -> Question:
    """What a lazy test asks of the local name whose attribute it fills, where a call gave it on this very turn."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    lazy = [part for part in parts if guards.classify(part, body, scope.tests) == guards.LAZY]
    names = {_filled_in(part) for part in lazy}
    name = names.pop() if len(names) == 1 else ""
    if name not in scope.handed or scope.has_parameter(name):
        return None
    begins = scope.handed[name]
    return ("fresh", name, guards.LAZY) if _turn(begins, scope) == _turn(context, scope) else None


def _filled_in(test: ast.expr) -> str:
    """`result` of `result.labels is None`, `not result.done`; empty for what is no attribute of a name."""
    while isinstance(test, (ast.UnaryOp, ast.Compare)):
        test = test.operand if isinstance(test, ast.UnaryOp) else test.left
    is_of_name = isinstance(test, ast.Attribute) and isinstance(test.value, ast.Name)
    return test.value.id if is_of_name else ""  # type: ignore[attr-defined]


def _turn(context: int, scope: Growing) -> int:
    """The innermost loop around a context."""
    while context >= 0 and scope.contexts[context].kind != "loop":
        context = scope.contexts[context].parent
    return context
