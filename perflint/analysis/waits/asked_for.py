"""Reads of the device that happen only when asked for, or where something went wrong."""

from __future__ import annotations

import ast
import re

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.waits.reads import is_on_device
from perflint.ir.calls import callee_name
from perflint.ir.notation import last_name
from perflint.syntax.walk import walk
from perflint.system.patterns import pattern

#: Flags that ask for text.
_ASKED = pattern(r"(?:^|_)(?:verbose|verbosity|debug|dbg|quiet|silent|print|show|trace|log)(?:_|$)", re.IGNORECASE)
#: Functions that tell of something that went wrong.
_COMPLAINS = pattern(r"warn|error|fail|critical|exception|alert", re.IGNORECASE)


def is_asked_for(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether `node` only runs under a flag that asks for text, because of what a device tensor held (the test has
    waited then), or where something went wrong.
    """
    child = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return bool(_COMPLAINS.search(outer.name))
        if isinstance(outer, ast.If) and child is not outer.test:
            block = outer.body if child in outer.body else outer.orelse
            if child in outer.body and _is_flag(outer.test):
                return True
            if _depends_on_device(outer.test, ctx) or _complains(block):
                return True
        child = outer
    return False


def _is_flag(test: ast.expr) -> bool:
    """`verbose`, `self.debug and step > 0`, `log_level > 1`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_is_flag(item) for item in test.values)
    if isinstance(test, ast.Compare):
        test = test.left
    return bool(_ASKED.search(last_name(test)))


def _depends_on_device(test: ast.expr, ctx: FileFacts) -> bool:
    for part in walk(test):
        if isinstance(part, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) and is_on_device(part, ctx):
            parent = ctx.tree.parent(part)
            if not isinstance(parent, ast.Attribute) and not _asks_for_none(parent):
                return True
    return False


def _asks_for_none(parent: ast.AST | None) -> bool:
    return isinstance(parent, ast.Compare) and isinstance(parent.ops[0], (ast.Is, ast.IsNot))


def _complains(block: list[ast.stmt]) -> bool:
    return any(
        isinstance(part, ast.Raise) or (isinstance(part, ast.Call) and _COMPLAINS.search(callee_name(part)) is not None)
        for statement in block
        if not isinstance(statement, (ast.FunctionDef, ast.ClassDef))
        for part in walk(statement)
    )
