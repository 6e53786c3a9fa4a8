"""TPL406: what `torch.compile` gave is left lying while the uncompiled model runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from perflint.api import Calls, Context, Finding, Heat, Impact, Rule, Tag, distributed, walk

from ._shared.compiling import is_compile_call

_WRAPPERS = distributed.DATA_PARALLEL | distributed.DISTRIBUTED_DATA_PARALLEL | distributed.FULLY_SHARDED


class _Handle(NamedTuple):
    """`compiled = torch.compile(model)`: the two names, and where."""

    call: ast.Call
    compiled: str
    raw: str


class CompiledHandleBypassed(Rule):
    """`torch.compile(model)` returns the compiled model, but the uncompiled one is called.

    What it does

    Reports discarded results of `torch.compile(model)`, and calls and wrappers that still use the uncompiled name.

    Why is this slow?

    `torch.compile` does not change its argument. It returns another object, and only calls of that object run
    compiled code. Calls through the old name run eagerly, and so does a `DistributedDataParallel` built from it.

    What to do

    Assign the result to the name that the loop uses, `model = torch.compile(model)`, or compile in place with
    `model.compile()`, which also keeps the keys of the state dict.

    Fix safety

    No fix: only the author knows which of the two is meant.

    Not reported

    - The uncompiled model used for its state dict, attributes, generation or evaluation, while training calls the
      compiled one.
    - Programs that choose between the two by an option.
    - Tests.

    References

    - `torch.compile`: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
    - torch.nn.Module: https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.compile
    """

    code, name = "TPL406", "compiled-handle-bypassed"
    impact = Impact.HIGH
    lasting = True
    listens = (Calls("compile", "optimize"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not is_compile_call(node, ctx):
            return
        parent = ctx.tree.parent(node)
        if isinstance(parent, ast.Expr):
            if _outlives(node.args[0], ctx):
                yield self._dropped(node, ctx)
            return
        handle = _handle(node, parent, ctx)
        if handle is None:
            return
        if handle.compiled.startswith("self."):
            yield from self._unread_attribute(handle, ctx)
        else:
            yield from self._bypassed(handle, ctx)

    def _dropped(self, node: ast.Call, ctx: Context) -> Finding:
        raw = ctx.text(node.args[0])
        return self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` returns the compiled module and this call discards it: `{raw}` stays uncompiled.",
            advice=f"Assign the result, `{raw} = {ctx.text(node)}`, or compile in place: `{raw}.compile()`.",
        )

    def _unread_attribute(self, handle: _Handle, ctx: Context) -> Iterator[Finding]:
        attribute = handle.compiled.removeprefix("self.")
        cls = ctx.tree.class_of(handle.call)
        if cls is None or "." in attribute or _reads(cls, attribute) or _read_elsewhere(attribute, ctx):
            return
        used = [part for part in walk(cls) if _is_hot_call(part, handle.raw, ctx)]
        if used:
            yield self._finding(used[0], handle, ctx)

    def _bypassed(self, handle: _Handle, ctx: Context) -> Iterator[Finding]:
        flow = ctx.inference.flow
        uses = flow.uses_after(handle.call, handle.compiled)
        wrapped = _wrapped(handle, ctx)
        if wrapped is not None:
            yield self.finding(
                wrapped,
                ctx,
                f"`{ctx.text(wrapped.func)}` wraps the uncompiled `{handle.raw}`; the compiled model is "
                f"`{handle.compiled}`.",
                advice=f"Pass `{handle.compiled}`.",
                related=(ctx.hop(handle.call, "compiled here"),),
            )
            return
        if any(_may_run(use, ctx) for use in uses):
            return
        for use in flow.uses_after(handle.call, handle.raw):
            call = ctx.tree.parent(use)
            if _is_hot_call(call, handle.raw, ctx) and _same(use, handle, ctx):
                assert isinstance(call, ast.Call)
                yield self._finding(call, handle, ctx)
                return

    def _finding(self, call: ast.AST, handle: _Handle, ctx: Context) -> Finding:
        return self.finding(
            call,
            ctx,
            f"`{ctx.text(call)}` {ctx.heat(call).phrase} and calls the uncompiled `{handle.raw}`; its compiled form "
            f"is `{handle.compiled}`.",
            advice=f"Call `{handle.compiled}`, or compile in place: `{handle.raw}.compile()`.",
            related=(ctx.hop(handle.call, "compiled here"),),
        )


def _outlives(node: ast.expr, ctx: Context) -> bool:
    """Whether what is compiled is a thing that is used elsewhere: a name or a path, not something made on the spot."""
    return isinstance(node, (ast.Name, ast.Attribute)) and not any(
        isinstance(outer, (ast.With, ast.Try)) for outer in ctx.tree.ancestors(node)
    )


def _handle(node: ast.Call, parent: ast.AST | None, ctx: Context) -> _Handle | None:
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
        return _Handle(node, compiled, raw)
    if compiled.startswith("self.") and raw.startswith("self.") and ctx.kind(node.args[0]).tag is Tag.MODULE:
        return _Handle(node, compiled, raw)
    return None


def _wrapped(handle: _Handle, ctx: Context) -> ast.Call | None:
    """The call that makes a parallel wrapper of the uncompiled model after it was compiled."""
    for use in ctx.inference.flow.uses_after(handle.call, handle.raw):
        call = ctx.tree.parent(use)
        if not isinstance(call, ast.Call) or not call.args or call.args[0] is not use:
            continue
        if ctx.is_call_of(call, *_WRAPPERS) and _same(use, handle, ctx) and call.lineno > handle.call.lineno:
            return call
    return None


def _same(use: ast.Name, handle: _Handle, ctx: Context) -> bool:
    """Whether the name still means what was compiled."""
    compiled = handle.call.args[0]
    assert isinstance(compiled, ast.Name)
    flow = ctx.inference.flow
    return {id(item) for item in flow.definitions(use)} == {id(item) for item in flow.definitions(compiled)}


def _may_run(use: ast.Name, ctx: Context) -> bool:
    """Whether the compiled object may be called through this use: everything but a look at its attributes."""
    parent = ctx.tree.parent(use)
    if isinstance(parent, ast.Attribute):
        return parent.attr not in ("state_dict", "parameters", "load_state_dict", "eval", "train", "to", "_orig_mod")
    return not isinstance(parent, ast.Expr)


def _is_hot_call(node: ast.AST | None, raw: str, ctx: Context) -> bool:
    return isinstance(node, ast.Call) and ctx.text(node.func) == raw and ctx.heat(node) >= Heat.STEP


def _reads(cls: ast.ClassDef, attribute: str) -> bool:
    return any(
        isinstance(part, ast.Attribute) and part.attr == attribute and isinstance(part.ctx, ast.Load)
        for part in walk(cls)
    )


def _read_elsewhere(attribute: str, ctx: Context) -> bool:
    others = [path for path in ctx.program.summaries if path != ctx.path]
    return ctx.program.mentions((attribute,), others)
