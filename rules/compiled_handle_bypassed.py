"""TPL406: what `torch.compile` gave is left lying while the uncompiled model runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Context, Finding, Heat, Impact, Rule, walk
from perflint.api.compiled import is_compile_call
from perflint.api.gradients import (
    CompiledHandle,
    compiled_handle,
    may_run_compiled,
    still_means_the_compiled,
    wrapped_uncompiled,
)


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
        handle = compiled_handle(node, parent, ctx)
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

    def _unread_attribute(self, handle: CompiledHandle, ctx: Context) -> Iterator[Finding]:
        attribute = handle.compiled.removeprefix("self.")
        cls = ctx.tree.class_of(handle.call)
        if cls is None or "." in attribute or _reads(cls, attribute) or _read_elsewhere(attribute, ctx):
            return
        used = [part for part in walk(cls) if _is_hot_call(part, handle.raw, ctx)]
        if used:
            yield self._finding(used[0], handle, ctx)

    def _bypassed(self, handle: CompiledHandle, ctx: Context) -> Iterator[Finding]:
        flow = ctx.inference.flow
        uses = flow.uses_after(handle.call, handle.compiled)
        wrapped = wrapped_uncompiled(handle, ctx)
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
        if any(may_run_compiled(use, ctx) for use in uses):
            return
        for use in flow.uses_after(handle.call, handle.raw):
            call = ctx.tree.parent(use)
            if _is_hot_call(call, handle.raw, ctx) and still_means_the_compiled(use, handle, ctx):
                assert isinstance(call, ast.Call)
                yield self._finding(call, handle, ctx)
                return

    def _finding(self, call: ast.AST, handle: CompiledHandle, ctx: Context) -> Finding:
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
