"""Names of compiled objects and of what was compiled, and which of them runs."""

from __future__ import annotations

import ast
from typing import NamedTuple

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.kind import Tag
from perflint.finding import Heat
from perflint.syntax.walk import walk
from perflint.torch_model import distributed

_WRAPPERS = distributed.DATA_PARALLEL | distributed.DISTRIBUTED_DATA_PARALLEL | distributed.FULLY_SHARDED


class CompiledHandle(NamedTuple):
    """`compiled = torch.compile(model)`: the two names, and where."""

    call: ast.Call
    compiled: str
    raw: str

    @property
    def is_attribute(self) -> bool:
        return self.compiled.startswith("self.")


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
    if handle.is_attribute:
        return None
    for use in ctx.inference.flow.uses_after(handle.call, handle.raw):
        call = ctx.tree.parent(use)
        if not isinstance(call, ast.Call) or not call.args or call.args[0] is not use:
            continue
        if (
            ctx.is_call_of(call, *_WRAPPERS)
            and _still_means_the_compiled(use, handle, ctx)
            and call.lineno > handle.call.lineno
        ):
            return call
    return None


def called_uncompiled(handle: CompiledHandle, ctx: FileFacts) -> ast.Call | None:
    """The call of the uncompiled model that runs every step, where nothing may run the compiled one."""
    if handle.is_attribute:
        cls = ctx.tree.class_of(handle.call)
        if cls is None or _is_attribute_read(handle, cls, ctx):
            return None
        calls = (part for part in walk(cls) if isinstance(part, ast.Call))
        return next((call for call in calls if _is_hot_call(call, handle.raw, ctx)), None)
    flow = ctx.inference.flow
    if any(may_run_compiled(use, ctx) for use in flow.uses_after(handle.call, handle.compiled)):
        return None
    for use in flow.uses_after(handle.call, handle.raw):
        call = ctx.tree.parent(use)
        if isinstance(call, ast.Call) and _is_hot_call(call, handle.raw, ctx):
            if _still_means_the_compiled(use, handle, ctx):
                return call
    return None


def _is_hot_call(node: ast.Call, raw: str, ctx: FileFacts) -> bool:
    return ctx.text(node.func) == raw and ctx.heat(node) >= Heat.STEP


def _still_means_the_compiled(use: ast.Name, handle: CompiledHandle, ctx: FileFacts) -> bool:
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


def _is_attribute_read(handle: CompiledHandle, cls: ast.ClassDef, ctx: FileFacts) -> bool:
    """Whether anything may read the attribute that holds the compiled object: in its class, or in another file."""
    attribute = handle.compiled.removeprefix("self.")
    return "." in attribute or _reads(cls, attribute) or _read_elsewhere(attribute, ctx)


def _reads(cls: ast.ClassDef, attribute: str) -> bool:
    return any(
        isinstance(part, ast.Attribute) and part.attr == attribute and isinstance(part.ctx, ast.Load)
        for part in walk(cls)
    )


def _read_elsewhere(attribute: str, ctx: FileFacts) -> bool:
    others = [path for path in ctx.program.summaries if path != ctx.path]
    return ctx.program.mentions((attribute,), others)


def is_used_elsewhere(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether what is compiled is a thing that is used elsewhere: a name or a path, not something made on the spot."""
    return isinstance(node, (ast.Name, ast.Attribute)) and not any(
        isinstance(outer, (ast.With, ast.Try)) for outer in ctx.tree.ancestors(node)
    )
