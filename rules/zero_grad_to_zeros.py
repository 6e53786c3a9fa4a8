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
    Functions,
    Heat,
    Impact,
    Rule,
    Tier,
    argument,
    has_unpacking,
    is_constant,
)
from perflint.api.gradients import is_idle, zeroes_by_default, zeroes_gradients

#: What needs the gradients where they are: captured graphs, and parts of tensors that other processes share.
_KEEPERS = ("CUDAGraph", "make_graphed_callables", "graph_pool_handle", "maybe_context_parallel", "context_parallel")


class ZeroGradToZeros(Rule):
    """Setting gradients to zero keeps their memory during the forward pass; `None` frees it.

    What it does

    Reports `zero_grad(set_to_none=False)`, `p.grad.zero_()` loops and similar in training code.

    Why is this slow?

    `set_to_none=False` launches kernels for every gradient, and keeps all of them alive while the forward pass
    allocates activations. The gain of `None` is device memory and fewer kernels, not always time.

    What to do

    Call `optimizer.zero_grad()`: since torch 2.0 it sets gradients to `None`. For an older torch write
    `optimizer.zero_grad(set_to_none=True)`.

    Fix safety

    Unsafe: a parameter without a gradient in a step is then skipped, where with zeros momentum and weight decay still
    change it. Code that reads `p.grad` finds `None`.

    Not reported

    - Files that use CUDA graphs (fixed gradient addresses) or context parallelism.
    - Files that read `.grad` between `zero_grad` and `backward`.
    - `zero_grad` of a wrapper, unless nothing copies or adds into these gradients.
    - Functions that nothing calls.

    Measured

    The call takes 3 times as long for 300 small parameters and 23 times for large ones. A whole step on a CPU (torch
    2.13) was no faster without it: no difference for 20 layers of 32; with 8 layers of 1,024, whose gradients are
    then allocated again, it ran at 0.74 times the speed.

    References

    - `torch.optim.Optimizer.zero_grad`:
      https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
    """

    code, name = "TPL307", "zero-grad-to-zeros"
    tier = Tier.EXTRA
    impact = Impact.LOW
    listens = (Calls("zero_grad", at_least=Heat.STEP), Functions("zero_grad", "zero_", "set_to_none"))

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if ctx.mentions(*_KEEPERS):
            return
        if isinstance(node, ast.Call):
            yield from self._call(node, ctx)
        elif isinstance(node, ast.FunctionDef) and node.name == "zero_grad" and not is_idle(node, ctx):
            yield from self._method(node, ctx)

    def _method(self, node: ast.FunctionDef, ctx: Context) -> Iterator[Finding]:
        """What a wrapper's own `zero_grad` does, which runs in every step by its meaning."""
        for part in zeroes_gradients(node, ctx):
            text = "set_to_none=False" if isinstance(part, ast.Constant) else ctx.text(part)
            yield self.finding(
                part,
                ctx,
                f"`{text}` fills every gradient with zeros in every step; `None` would free their memory.",
                advice="Write `p.grad = None` for each parameter."
                if isinstance(part, ast.Call)
                else "Default `set_to_none` to True.",
            )

    def _call(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        if not isinstance(node.func, ast.Attribute) or has_unpacking(node):
            return
        if ctx.mentions("grad"):
            return
        given = argument(node, 0, "set_to_none")
        written = is_constant(given, value=False)
        if not written and not (given is None and zeroes_by_default(node.func.value, ctx)):
            return
        better = f"{ctx.tree.text(node.func)}()" if written else f"{ctx.tree.text(node.func)}(set_to_none=True)"
        fix = Fix(
            "Set the gradients to None",
            Applicability.UNSAFE,
            (ctx.edit.replace(node, better),),
            reason="the optimizer then skips a parameter without a new gradient, and its `.grad` is `None`",
            numerics="changes training",
        )
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` {ctx.heat(node).phrase} and fills gradients with zeros instead of freeing them.",
            advice=f"Write `{' '.join(better.split())}`.",
            fix=fix,
        )
