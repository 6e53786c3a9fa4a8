"""TPL406: what `torch.compile` gave is left lying while the uncompiled model runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Context, Finding, Impact, Rule
from perflint.api.compiled import is_compile_call
from perflint.api.gradients import (
    CompiledHandle,
    called_uncompiled,
    compiled_handle,
    is_used_elsewhere,
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
            if is_used_elsewhere(node.args[0], ctx):
                yield self._dropped(node, ctx)
            return
        handle = compiled_handle(node, parent, ctx)
        if handle is None:
            return
        wrapped = wrapped_uncompiled(handle, ctx)
        called = None if wrapped is not None else called_uncompiled(handle, ctx)
        if wrapped is not None:
            yield self._wrapped(wrapped, handle, ctx)
        elif called is not None:
            yield self._called(called, handle, ctx)

    def _dropped(self, node: ast.Call, ctx: Context) -> Finding:
        raw = ctx.text(node.args[0])
        return self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` returns the compiled module and this call discards it: `{raw}` stays uncompiled.",
            advice=f"Assign the result, `{raw} = {ctx.text(node)}`, or compile in place: `{raw}.compile()`.",
        )

    def _wrapped(self, call: ast.Call, handle: CompiledHandle, ctx: Context) -> Finding:
        return self.finding(
            call,
            ctx,
            f"`{ctx.text(call.func)}` wraps the uncompiled `{handle.raw}`; the compiled model is `{handle.compiled}`.",
            advice=f"Pass `{handle.compiled}`.",
            related=(ctx.hop(handle.call, "compiled here"),),
        )

    def _called(self, call: ast.Call, handle: CompiledHandle, ctx: Context) -> Finding:
        return self.finding(
            call,
            ctx,
            f"`{ctx.text(call)}` {ctx.heat(call).phrase} and calls the uncompiled `{handle.raw}`; its compiled form "
            f"is `{handle.compiled}`.",
            advice=f"Call `{handle.compiled}`, or compile in place: `{handle.raw}.compile()`.",
            related=(ctx.hop(handle.call, "compiled here"),),
        )
