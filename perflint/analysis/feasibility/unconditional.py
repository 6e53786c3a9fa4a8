"""Code that runs in every run of a program."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.phases import DIAGNOSES, ENTRY
from perflint.analysis.phases.scripts import is_main_guard
from perflint.ir.calls import argument, callee_name, is_constant
from perflint.syntax.walk import walk


def is_in_every_run(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether `node` runs in every run: in the module's body or an entry of the program, under no condition."""
    if not all(is_main_guard(test) for test, _ in ctx.conditions(node, outward=True)):
        return False
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if DIAGNOSES.search(outer.name) or not (
                ENTRY.search(outer.name) or ctx.program.trains(ctx.own_scope(outer))
            ):
                return False
        elif isinstance(outer, ast.ClassDef) and DIAGNOSES.search(outer.name):
            return False
        elif isinstance(outer, (ast.ExceptHandler, ast.Lambda, ast.Match)):
            return False
    return not _is_switched_back(node, ctx)


def _is_switched_back(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the file switches the same thing off as well, so that somebody minds it."""
    function = ctx.tree.function_of(node) or ctx.tree.module
    for part in walk(function):
        if part is node or not isinstance(part, ast.Call):
            continue
        if callee_name(part) == "set_detect_anomaly" and is_constant(argument(part, 0, "mode"), value=False):
            return isinstance(node, ast.Call) and callee_name(node) == "set_detect_anomaly"
        if callee_name(part) in ("_record_memory_history", "_dump_snapshot"):
            return isinstance(node, ast.Call) and callee_name(node) == "_record_memory_history"
        if callee_name(part) in ("pop", "unsetenv") and isinstance(node, ast.Assign):
            target = node.targets[0]
            return isinstance(target, ast.Subscript) and ctx.text(target.slice) in ctx.text(part)
    return False
