"""Which functions of a file set which of its globals: `if _kernels is None: load_kernels()` runs once in a process."""

from __future__ import annotations

import ast
from collections.abc import Container

from perflint.ir.bodies import written_name

__all__ = ["fills_by_call", "setters_of"]


def setters_of(module: ast.Module) -> tuple[str, ...]:
    """What is known in every function of a file: that a call of such a function sets such a name. Only what the
    function declares as its own statement counts.
    """
    found: list[str] = []
    for item in module.body:
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for part in item.body:
                if isinstance(part, ast.Global):
                    found += [_key(item.name, name) for name in part.names]
    return tuple(found)


def fills_by_call(body: list[ast.stmt], missing: ast.expr, known: Container[str]) -> bool:
    """Whether `body` calls, as a statement of its own, a function that sets the global that was found to be None."""
    if not isinstance(missing, ast.Name):
        return False
    calls = (item.value for item in body if isinstance(item, ast.Expr) and isinstance(item.value, ast.Call))
    return any(isinstance(call.func, ast.Name) and _key(written_name(call.func), missing.id) in known for call in calls)


def _key(function: str, name: str) -> str:
    return f"{function}() sets {name}"
