"""TPL307: gradients set to zeros where they could be dropped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Context,
    Finding,
    Fix,
    Heat,
    Impact,
    Rule,
    Tag,
    Tier,
    argument,
    has_unpacking,
    is_constant,
)


class ZeroGradToZeros(Rule):
    """Writing zeros into gradients keeps their memory through the forward pass, where dropping them frees it.

    Why it is slow
    `set_to_none=False` runs a kernel over every gradient and keeps all of them alive while activations pile up. The
    call itself takes 3 times as long for 300 small parameters and 23 times for large ones, but a whole step on a CPU
    was not slower (measured with torch 2.13): what is gained is peak memory on a device, and fewer kernels.

    What to write instead
    Plain `optimizer.zero_grad()`: since torch 2.0 it sets gradients to `None`. For an older torch write
    `optimizer.zero_grad(set_to_none=True)`.

    When to leave it
    With CUDA graphs, which need gradients at fixed addresses, and where code reads `.grad` between `zero_grad` and
    `backward`. perflint is silent in files that capture graphs or touch `.grad` themselves.

    Fix safety
    Unsafe: a parameter that gets no gradient in a step is then left alone, where zeros let momentum and weight decay
    move it; code that reads `p.grad` finds `None`.
    """

    code, name = "TPL307", "zero-grad-to-zeros"
    tier = Tier.EXTRA
    impact = Impact.LOW
    listens = (Calls("zero_grad"),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute) or has_unpacking(node):
            return
        if ctx.mentions("CUDAGraph", "make_graphed_callables", "graph_pool_handle", "grad"):
            return
        given = argument(node, 0, "set_to_none")
        written = is_constant(given, value=False)
        if not written and not (given is None and _zeroes_by_default(node.func.value, ctx)):
            return
        better = f"{ctx.text(node.func)}()" if written else f"{ctx.text(node.func)}(set_to_none=True)"
        fix = Fix(
            "Drop the gradients",
            Applicability.UNSAFE,
            (ctx.edit.replace(node, better),),
            reason="a parameter without a new gradient is then skipped by the optimizer, and its `.grad` is `None`",
        )
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` {ctx.heat(node).phrase} and writes zeros where it could free the gradients' memory.",
            advice=f"Write `{better}`.",
            fix=fix,
        )


def _zeroes_by_default(receiver: ast.expr, ctx: Context) -> bool:
    """Whether the project is held to a torch whose optimizers write zeros unless told otherwise."""
    version = ctx.pinned_torch
    return version is not None and version < (2, 0) and ctx.kind(receiver).tag is Tag.OPTIMIZER
