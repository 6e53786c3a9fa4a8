"""Whether an expression is a name, or has it somewhere in it."""

from __future__ import annotations

import ast

from perflint.syntax.walk import walk


def is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def mentions_name(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in walk(node))
