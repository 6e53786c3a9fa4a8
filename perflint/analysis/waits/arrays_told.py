"""Arrays that a training step makes of device tensors only to tell something: a number, an account, a text."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.model_calls import name_of_whole
from perflint.analysis.naming.phases import KEEPS_EXPERIENCE
from perflint.ir.calls import callee_name
from perflint.torch_model import arrays

#: Methods and functions of arrays that give an array again.
_KEEPS = frozenset("numpy astype flatten ravel reshape squeeze copy transpose round argmax argmin argsort".split())
#: Methods that give one number of an array, or few.
_REDUCES = frozenset("mean sum all any max min item std var".split())
#: Methods of what keeps account of numbers. Whole results in a list are what the program is after.
_COUNTS = frozenset({"update", "add"})
_DEPTH = 3


def only_tells(value: ast.expr, ctx: FileFacts, depth: int = _DEPTH) -> bool:
    """Whether all that becomes of a value on the host is numbers to look at, or text: later steps need none of it."""
    child: ast.AST = value
    for outer in ctx.tree.ancestors(value):
        if isinstance(outer, ast.Call):
            answer = _told_to(outer, ctx) if child is not outer.func else callee_name(outer) in _REDUCES or None
            if answer is not None:
                return answer
        elif isinstance(outer, ast.Attribute):
            if outer.attr not in _KEEPS | _REDUCES:
                return outer.attr in ("shape", "size", "ndim")
        elif isinstance(outer, ast.Subscript):
            if child is not outer.value:
                return False
        elif isinstance(outer, (ast.JoinedStr, ast.FormattedValue, ast.AugAssign)):
            return True
        elif isinstance(outer, ast.Assign):
            return depth > 0 and _all_tell(outer, ctx, depth - 1)
        elif not isinstance(outer, (ast.Compare, ast.BinOp, ast.UnaryOp)):
            return False
        child = outer
    return False


def _all_tell(statement: ast.Assign, ctx: FileFacts, depth: int) -> bool:
    """The same of each use of the name that an assignment binds."""
    target = statement.targets[0] if len(statement.targets) == 1 else None
    made = ctx.inference.flow.definition_at(target) if isinstance(target, ast.Name) else None
    uses = ctx.inference.flow.uses_of(made) if made is not None else []
    return bool(uses) and all(only_tells(use, ctx, depth) for use in uses)


def _told_to(call: ast.Call, ctx: FileFacts) -> bool | None:
    """Whether a call only tells what it is given; None where its result is asked further."""
    name = callee_name(call)
    target = ctx.target(call.func) or ""
    if target in ("print", "str", "repr", "len", "float", "int", "sum"):
        return True
    if target.startswith("numpy."):
        return True if target in arrays.ARRAY_REDUCTIONS else None
    if name in _COUNTS and isinstance(call.func, ast.Attribute):
        return not KEEPS_EXPERIENCE.search(name_of_whole(call.func.value))
    return False
