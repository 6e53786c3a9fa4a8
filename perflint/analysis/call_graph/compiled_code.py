"""Where code is compiled, and which of it runs only when it is traced."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.finding import Hop
from perflint.syntax.walk import walk
from perflint.torch_model import compiling


def is_compile_call(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether `node` is `torch.compile(something, ...)`, which hands back the compiled thing."""
    return isinstance(node, ast.Call) and bool(node.args) and ctx.is_call_of(node, *compiling.COMPILERS)


def compiled_at(node: ast.AST, ctx: FileFacts) -> Hop | None:
    """Where the code that `node` belongs to is compiled; None where it runs eagerly or only when it is not traced."""
    found = ctx.program.compiled.get(ctx.scope(node))
    return None if found is None or _is_under_tracing_test(node, ctx) else found


def _is_under_tracing_test(node: ast.AST, ctx: FileFacts) -> bool:
    return any(asks_for_tracing(test) for test, _ in ctx.conditions(node))


def asks_for_tracing(test: ast.expr) -> bool:
    """Whether a test holds only where code is traced, or only where it is not."""
    return any(
        isinstance(part, ast.Call)
        and (part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", ""))
        in compiling.TRACING_TESTS
        for part in walk(test)
    )
