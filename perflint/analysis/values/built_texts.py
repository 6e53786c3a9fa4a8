"""Texts that are put together from data, and whether a loop puts the same one together on each turn."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.ir.notation import is_text
from perflint.syntax.walk import walk


def _own_names(node: ast.AST) -> Iterator[str]:
    return (part.id for part in walk(node) if isinstance(part, ast.Name))


def is_same_text(built: ast.expr, loop: ast.AST) -> bool:
    """Whether a pattern is put together from what does not change in the loop."""
    return not _changes(set(_own_names(built)), loop) and not _has_calls_with_effects(built)


def built_text(pattern: ast.expr, node: ast.Call, ctx: FileFacts) -> ast.expr | None:
    """The expression that puts the pattern together from data, None when it is not plain to see that one does."""
    if isinstance(pattern, ast.Name):
        assigned = _assigned_in_loop(pattern.id, node, ctx)
        return built_text(assigned, node, ctx) if assigned is not None and not isinstance(assigned, ast.Name) else None
    if isinstance(pattern, ast.JoinedStr):
        return pattern if any(isinstance(part, ast.FormattedValue) for part in pattern.values) else None
    if isinstance(pattern, ast.BinOp) and isinstance(pattern.op, (ast.Add, ast.Mod)):
        texts = [pattern.left, pattern.right]
        if any(isinstance(part, (ast.JoinedStr, ast.BinOp)) or is_text(part) for part in texts):
            return pattern if any(isinstance(part, ast.Name) for part in walk(pattern)) else None
        return None
    if isinstance(pattern, ast.Call) and isinstance(pattern.func, ast.Attribute):
        if pattern.func.attr in ("format", "join", "replace") or ctx.target(pattern.func) == "re.escape":
            return pattern if any(isinstance(part, ast.Name) for part in walk(pattern)) else None
    return None


def _assigned_in_loop(name: str, node: ast.AST, ctx: FileFacts) -> ast.expr | None:
    """What a name is assigned in the innermost loop around `node`, when that is its only assignment there."""
    for loop in ctx.loops(node)[:3]:
        found = [
            statement.value
            for part in loop.body
            for statement in walk(part)
            if isinstance(statement, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)
        ]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _changes(names: set[str], loop: ast.AST) -> bool:
    """Whether one of the names is bound in the loop, to more than the same constant each time."""
    constants = {
        id(target)
        for part in walk(loop)
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.Constant)
        for target in part.targets
    }
    return any(
        isinstance(part, ast.Name)
        and isinstance(part.ctx, ast.Store)
        and part.id in names
        and id(part) not in constants
        for part in walk(loop)
    )


def _has_calls_with_effects(node: ast.expr) -> bool:
    for part in walk(node):
        if isinstance(part, ast.Call):
            method = part.func.attr if isinstance(part.func, ast.Attribute) else ""
            if method not in ("escape", "format", "join", "replace", "lower", "upper", "strip"):
                return True
    return False
