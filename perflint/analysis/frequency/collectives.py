"""Collectives that are called for one value after the other."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import callee_name, is_constant, keyword

COLLECTIVES = ("all_reduce", "reduce", "all_gather", "broadcast")
_TARGETS = tuple(f"torch.distributed.{name}" for name in COLLECTIVES)


def is_collective(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a call exchanges a tensor between all processes."""
    if not isinstance(node, ast.Call) or not ctx.is_call_of(node, *_TARGETS):
        return False
    later = keyword(node, "async_op")
    return later is None or is_constant(later, value=False)


def loop_over_values(node: ast.Call, ctx: FileFacts) -> ast.For | None:
    """The innermost loop, where what is exchanged is, or is kept in, an item that the loop takes from a container."""
    loops = ctx.loops(node)
    if not loops or not isinstance(loops[0], ast.For) or ctx.is_root_loop(loops[0]) or not node.args:
        return None
    taken = {part.id for part in ast.walk(loops[0].target) if isinstance(part, ast.Name)}
    sent = {part.id for part in ast.walk(node.args[0]) if isinstance(part, ast.Name)}
    is_range = isinstance(loops[0].iter, ast.Call) and callee_name(loops[0].iter) == "range"
    return loops[0] if taken & sent and not is_range else None


def row_of_collectives(node: ast.Call, ctx: FileFacts) -> list[ast.Call]:
    """The calls of the same collective that are statements of one block, with nothing but assignments between them."""
    statement = ctx.tree.statement_of(node)
    rows: list[list[ast.Call]] = [[]]
    for item in ctx.tree.block_of(statement):
        call = item.value if isinstance(item, ast.Expr) else None
        if isinstance(call, ast.Call) and is_collective(call, ctx) and callee_name(call) == callee_name(node):
            rows[-1].append(call)
        elif not isinstance(item, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            rows.append([])
    return next((row for row in rows if node in row), [])
