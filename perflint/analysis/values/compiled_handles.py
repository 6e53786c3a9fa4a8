"""Names of compiled objects and of what was compiled, and which of them runs."""

from __future__ import annotations

import ast
from typing import NamedTuple

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.kind import Tag
from perflint.torch_model import distributed

_WRAPPERS = distributed.DATA_PARALLEL | distributed.DISTRIBUTED_DATA_PARALLEL | distributed.FULLY_SHARDED


class CompiledHandle(NamedTuple):
    """`compiled = torch.compile(model)`: the two names, and where."""

    call: ast.Call
    compiled: str
    raw: str


def compiled_handle(node: ast.Call, parent: ast.AST | None, ctx: FileFacts) -> CompiledHandle | None:
    """The two names of `compiled = torch.compile(model)`; None where they are the same, or not plain."""
    if isinstance(parent, ast.AnnAssign):
        target: ast.expr = parent.target
    elif isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        target = parent.targets[0]
    else:
        return None
    compiled, raw = ctx.text(target), ctx.text(node.args[0])
    if not isinstance(node.args[0], (ast.Name, ast.Attribute)) or compiled == raw:
        return None
    if isinstance(target, ast.Name) and isinstance(node.args[0], ast.Name):
        return CompiledHandle(node, compiled, raw)
    if compiled.startswith("self.") and raw.startswith("self.") and ctx.kind(node.args[0]).tag is Tag.MODULE:
        return CompiledHandle(node, compiled, raw)
    return None


def wrapped_uncompiled(handle: CompiledHandle, ctx: FileFacts) -> ast.Call | None:
    """The call that makes a parallel wrapper of the uncompiled model after it was compiled."""
    for use in ctx.inference.flow.uses_after(handle.call, handle.raw):
        call = ctx.tree.parent(use)
        if not isinstance(call, ast.Call) or not call.args or call.args[0] is not use:
            continue
        if (
            ctx.is_call_of(call, *_WRAPPERS)
            and still_means_the_compiled(use, handle, ctx)
            and call.lineno > handle.call.lineno
        ):
            return call
    return None


def still_means_the_compiled(use: ast.Name, handle: CompiledHandle, ctx: FileFacts) -> bool:
    """Whether the name still means what was compiled."""
    compiled = handle.call.args[0]
    assert isinstance(compiled, ast.Name)
    flow = ctx.inference.flow
    return {id(item) for item in flow.definitions(use)} == {id(item) for item in flow.definitions(compiled)}


def may_run_compiled(use: ast.Name, ctx: FileFacts) -> bool:
    """Whether the compiled object may be called through this use: everything but a look at its attributes."""
    parent = ctx.tree.parent(use)
    if isinstance(parent, ast.Attribute):
        return parent.attr not in ("state_dict", "parameters", "load_state_dict", "eval", "train", "to", "_orig_mod")
    return not isinstance(parent, ast.Expr)
