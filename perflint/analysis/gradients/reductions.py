"""Where a program says itself when gradients are reduced."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.models import MINDS_SYNC, WITHOUT_SYNC
from perflint.analysis.phases.loop_purpose import names_in
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk

_WITHOUT = ("no_sync", "no_backward_sync")


def no_sync_around_backward_only(node: ast.Call, ctx: FileFacts) -> ast.expr | None:
    """The `no_sync()` of a `with` in whose body nothing but the backward happens, with the forward in sight before."""
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.For, ast.While)):
            return None
        if not isinstance(outer, ast.With):
            continue
        for item in outer.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and WITHOUT_SYNC.search(callee_name(call)):
                return call if _only_backward(outer) and _forward_before(node, outer, ctx) else None
    return None


def _only_backward(block: ast.With) -> bool:
    return all(
        isinstance(item, ast.Expr) and isinstance(item.value, ast.Call) and callee_name(item.value) == "backward"
        for item in block.body
    )


def _forward_before(node: ast.Call, block: ast.With, ctx: FileFacts) -> bool:
    """Whether the loss is made in this function, before the block, outside of any other `no_sync`."""
    given = node.func.value if isinstance(node.func, ast.Attribute) else node
    function = ctx.tree.function_of(node) or ctx.tree.module
    names = set(names_in(given))
    return any(
        isinstance(part, ast.Assign)
        and part.lineno < block.lineno
        and isinstance(part.value, (ast.Call, ast.BinOp, ast.Attribute, ast.Subscript))
        and any(isinstance(name, ast.Name) and name.id in names for target in part.targets for name in walk(target))
        for part in walk(function)
    ) and not any(
        isinstance(outer, ast.With) and "sync" in ctx.text(outer.items[0].context_expr)
        for outer in ctx.tree.ancestors(block)
    )


def minds_reductions(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the file, or a function on the way to the line, minds when gradients are reduced."""
    if any(MINDS_SYNC.search(name) for words in ctx.summary.words_by_statement().values() for name in words):
        return True
    _, route, _ = ctx.heat_and_route(node)
    return any(WITHOUT_SYNC.search(hop.text) for hop in route) or _is_in_own_block(node, ctx)


def _is_in_own_block(node: ast.Call, ctx: FileFacts) -> bool:
    """`with ddp_sync(model, last):`, of a file of the project that says `no_sync`; `with fabric.accumulate(m):`."""
    for outer in ctx.tree.ancestors(node):
        for item in outer.items if isinstance(outer, ast.With) else ():
            call = item.context_expr
            if isinstance(call, ast.Call) and callee_name(call) == "accumulate":
                return True  # the framework knows the last micro-batch
            target = ctx.project_target(call.func) if isinstance(call, ast.Call) else None
            if target is not None and ctx.program.mentions(_WITHOUT, {target.path}):
                return True
    return False
