"""The names of functions and classes in their file: `Class.method`, `function.<locals>.inner`.

Python's own `__qualname__`, but a second function of a name (overloads, `if` and `else` variants, all those called `_`)
gets a number: `convert~2`, as it has in summaries. What stands in it is `convert~2.<locals>.inner`. A class that is
defined again keeps its name. What `@overload` decorates only declares types: the function itself keeps the plain name.
"""

from __future__ import annotations

import ast

from perflint.syntax.walk import HOLDING, blocks

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def qualnames(module: ast.Module) -> list[tuple[str, ast.AST]]:
    """All functions and classes of a file with their names, in the order of the source."""
    found: list[tuple[str, ast.AST]] = []
    taken: set[str] = set()
    waiting: list[tuple[ast.AST, str]] = [(item, "") for item in reversed(module.body) if item.__class__ in HOLDING]
    while waiting:
        node, owner = waiting.pop()
        if isinstance(node, _FUNCTIONS):
            name = _fresh(f"{owner}{name_of(node)}", taken)
            taken.add(name)
            found.append((name, node))
            owner = f"{name}.<locals>."
        elif isinstance(node, ast.ClassDef):
            found.append((f"{owner}{node.name}", node))
            owner = f"{owner}{node.name}."
        inner = [(item, owner) for item in blocks(node) if item.__class__ in HOLDING]
        inner.reverse()
        waiting += inner
    return found


def name_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The name of a function, `convert~overload` of what only declares one more type of `convert`."""
    return f"{function.name}~overload" if any(map(_declares_type, function.decorator_list)) else function.name


def _declares_type(decorator: ast.expr) -> bool:
    """`@overload`, `@typing.overload`, `@torch.jit._overload`, `@torch.jit._overload_method`"""
    name = decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")
    return name in ("overload", "_overload", "_overload_method")


def _fresh(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name}~{number}" in taken:
        number += 1
    return f"{name}~{number}"
