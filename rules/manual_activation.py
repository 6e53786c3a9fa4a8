"""TPL618: an activation that is multiplied out by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Applicability, Calls, Confidence, Context, Finding, Fix, Heat, Impact, Rule, Tag
from perflint.api.invariants import is_traced
from perflint.api.layers import INNER_NAMES, activation_around

_SCRIPTED = ("torch.jit.script", "torch.jit.script_if_tracing")


class ManualActivation(Rule):
    """`x * torch.sigmoid(x)` and other activations are written out, although torch has one kernel for each.

    What it does

    Reports SiLU (swish), GELU, Mish, hardswish and hardsigmoid that are computed step by step, in code of every step.

    Why is this slow?

    Each step is a kernel that reads and writes the whole activation, and the backward pass keeps most of the
    intermediate tensors: GELU with `tanh` takes eight kernels and keeps about as many tensors of the size of `x`.
    `F.gelu` is one kernel in each direction and keeps `x` alone.

    What to do

    Call `F.silu(x)`, `F.gelu(x)`, `F.gelu(x, approximate="tanh")`, `F.mish(x)`, `F.hardswish(x)` or
    `F.hardsigmoid(x)`.

    Fix safety

    Unsafe: the function rounds in another place, so that the last bits differ, in half precision more than in float32.

    Not reported

    - Code that `torch.compile` or `torch.jit.script` compiles: the compiler fuses these steps.
    - `x * torch.sigmoid(1.702 * x)`, for which torch has no function.
    - Projects that support a torch without the function.
    - Modules that nothing in a project with training programs runs.

    Measured

    GELU with `tanh` of 2,048 x 3,072 numbers, forward and backward, took 1.6 times as long written out, with 370 MiB of
    memory against 128 (torch 2.13, CPU).

    References

    - `torch.nn.functional.silu`: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.silu.html
    - `torch.nn.functional.gelu`: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.gelu.html
    - Performance tuning guide, fuse operations:
      https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#fuse-operations
    """

    code, name = "TPL618", "manual-activation"
    impact = Impact.MEDIUM
    confidence = Confidence.MEDIUM
    listens = (Calls(*INNER_NAMES),)
    at_least = Heat.STEP
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        found = activation_around(node, ctx)
        if found is None or (ctx.torch_version or found.since) < found.since:
            return
        if len(ctx.heat_and_route(node)[1]) < 2 and ctx.program.whole.has_training:
            return  # a forward that nothing in sight calls: a left-over, where the project trains by itself
        if ctx.program.whole.compiles or is_traced(node, ctx) or _is_scripted(node, ctx):
            return
        if ctx.kind(found.of).tag is Tag.NUMBER:
            return  # asked last: it takes longest to tell
        functional, imports = ctx.edit.ensure_import("torch.nn.functional", at=found.node)
        call = f"{functional}.{found.call.format(ctx.text(found.of))}"
        fix = Fix(
            f"Call `{call}`",
            Applicability.UNSAFE,
            (ctx.edit.replace(found.node, call), *imports),
            reason="the function rounds in another place",
            numerics="same to rounding",
        )
        yield self.finding(
            found.node,
            ctx,
            f"`{call}` is written out, and {ctx.heat(node).phrase} as {found.kernels} kernels over the whole tensor.",
            advice=f"`{call}` is one kernel, and keeps only its input for the backward pass.",
            # A gate by itself is small: one number for each channel.
            impact=Impact.LOW if ctx.grad_off(node) or "sigmoid" in found.call else None,
            fix=fix if found.is_whole and not ctx.edit.would_lose_comment(found.node) else None,
        )


def _is_scripted(node: ast.AST, ctx: Context) -> bool:
    function = ctx.tree.function_of(node)
    return function is not None and any(ctx.target(item) in _SCRIPTED for item in function.decorator_list)
