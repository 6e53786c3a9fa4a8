"""What else the function does that makes a sample, for rules that weigh one part of its work against another."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.torch_model import sample_work


def decodes_beside(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the function around `node` decodes a picture or a sound as well, which takes milliseconds."""
    function = ctx.tree.function_of(node)
    return function is not None and any(
        isinstance(part, ast.Call) and ctx.target(part.func) in sample_work.DECODERS for part in ctx.body(function)
    )


def earlier_calls(node: ast.Call, ctx: FileFacts) -> list[ast.Call]:
    """The calls of the same library function before `node` in the function around it."""
    function, target = ctx.tree.function_of(node), ctx.target(node.func)
    found = [] if function is None else ctx.once(_calls, function)
    return [part for name, part in found if name == target and _place(part) < _place(node)]


def _calls(function: ast.FunctionDef | ast.AsyncFunctionDef, ctx: FileFacts) -> list[tuple[str | None, ast.Call]]:
    return [(ctx.target(part.func), part) for part in ctx.body(function) if isinstance(part, ast.Call)]


def _place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset
