"""Reads of the device that happen only when asked for, or where something went wrong."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import EXTERNAL_INSTANCE
from perflint.analysis.naming.phases import ASKS_FOR_TEXT, COMPLAINS
from perflint.analysis.waits.reads import is_on_device
from perflint.ir.calls import callee_name
from perflint.ir.notation import last_name, value_of
from perflint.syntax.walk import walk


def is_asked_for(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether `node` only runs under a flag that asks for text, because of what a device tensor held (the test has
    waited then), or where something went wrong.
    """
    function = ctx.tree.function_of(node)
    if function is not None and COMPLAINS.search(function.name):
        return True
    return any(
        (holds and _is_flag(test, ctx)) or _depends_on_device(test, ctx) or _complains(_arm(test, node, ctx))
        for test, holds in ctx.conditions(node, exits=False)
    )


def _arm(test: ast.expr, node: ast.AST, ctx: FileFacts) -> list[ast.stmt]:
    """The block that a test sends the program to, as far as `node` stands in it."""
    branch = ctx.tree.statement_of(test)
    if not isinstance(branch, ast.If):
        return []
    return branch.body if node.lineno <= (branch.body[-1].end_lineno or 0) else branch.orelse  # type: ignore[attr-defined]


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
        isinstance(part, ast.Raise) or (isinstance(part, ast.Call) and COMPLAINS.search(callee_name(part)) is not None)
        for statement in block
        if not isinstance(statement, (ast.FunctionDef, ast.ClassDef))
        for part in walk(statement)
    )


def _is_flag(test: ast.expr, ctx: FileFacts) -> bool:
    """`verbose`, `self.debug`, `options["log_level"] > 1`; not `self.log_writer is not None` of one that is made."""
    asked = test.left if isinstance(test, ast.Compare) else test
    key = asked.slice if isinstance(asked, ast.Subscript) else None
    name = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else last_name(asked)
    return bool(ASKS_FOR_TEXT.search(name)) and not _is_made(asked, test, ctx)


def _is_made(asked: ast.expr, test: ast.expr, ctx: FileFacts) -> bool:
    """Whether what is tested is an object of a library, such as a writer, that is there unless an option says no."""
    if not isinstance(asked, (ast.Name, ast.Attribute)):
        return False
    if not any(ref.kind == EXTERNAL_INSTANCE for ref in ctx.refs(asked)):
        return False
    return not ctx.program.is_off_by_default(value_of(asked), ctx.scope(test))
