"""Whether an expression is a name, or has it somewhere in it, and what a statement gives one."""

from __future__ import annotations

import ast

from perflint.syntax.walk import walk


def is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def mentions_name(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in walk(node))


def gives(statement: ast.Assign, name: str) -> bool:
    """Whether an assignment gives a plain name its value."""
    return any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)


def one_target(statement: ast.AST | None) -> ast.expr | None:
    """What an assignment binds alone, declared or not: `x` of `x = y` and of `x: Tensor = y`; None where several."""
    if isinstance(statement, ast.AnnAssign):
        return statement.target
    return statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
