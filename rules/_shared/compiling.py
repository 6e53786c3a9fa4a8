"""What the rules about `torch.compile` share."""

from __future__ import annotations

import ast

from perflint.api import Context, Hop, compiling, walk


def is_compile_call(node: ast.AST, ctx: Context) -> bool:
    """Whether `node` is `torch.compile(something, ...)`, which hands back the compiled thing."""
    return isinstance(node, ast.Call) and bool(node.args) and ctx.is_call_of(node, *compiling.COMPILERS)


def compiled_at(node: ast.AST, ctx: Context) -> Hop | None:
    """Where the code that `node` belongs to is compiled; None where it runs eagerly or only when it is not traced."""
    found = ctx.program.compiled.get(ctx.scope(node))
    return None if found is None or _is_under_tracing_test(node, ctx) else found


def _is_under_tracing_test(node: ast.AST, ctx: Context) -> bool:
    return any(asks_for_tracing(test) for test, _ in ctx.conditions(node))


def asks_for_tracing(test: ast.expr) -> bool:
    return any(
        isinstance(part, ast.Call)
        and (part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", ""))
        in compiling.TRACING_TESTS
        for part in walk(test)
    )
