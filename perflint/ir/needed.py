"""What a file imports whenever it is imported itself: one that cannot be had ends it before anything in it runs."""

from __future__ import annotations

import ast

#: What may hold an import that need not succeed, or none. After a loop of the file's own something has run already.
_PASSED = (
    ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If,
    ast.Try, ast.With, ast.Assert, ast.Delete, ast.Pass,
)  # fmt: skip


def needed_by(module: ast.Module) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The modules, with their leading dots, that a file imports whatever happens, each with the names it takes of it;
    no names for `import module`.
    """
    found: list[tuple[str, tuple[str, ...]]] = []
    for node in module.body:
        if isinstance(node, ast.Import):
            found += [(alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(("." * node.level + (node.module or ""), tuple(alias.name for alias in node.names)))
        elif not isinstance(node, _PASSED):
            break
    return tuple(found)
