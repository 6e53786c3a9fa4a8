"""TPL314: forwards whose results are only ever detached, with a graph recorded for nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Calls,
    Confidence,
    Context,
    Finding,
    Heat,
    Impact,
    Phase,
    Rule,
    Tag,
)
from perflint.api.gradients import (
    Followed,
    evaluated_elsewhere,
    forwards_behind,
    has_no_graph,
    holds_nothing,
    is_called_without_gradients,
    is_evaluated_as_a_whole,
    learns,
    may_differentiate,
    trains_itself,
)
from perflint.api.names import EVALUATES
from perflint.api.phases import is_for_a_picture

from ._fixes.no_grad_block import switch_off_for_statement

_DEPTH = 12


class TeacherForwardWithGrad(Rule):
    """A forward pass records an autograd graph, but its result is only ever detached.

    What it does

    Reports forward passes on the hot path, with gradients enabled, of which every result is detached.

    Why is this slow?

    With gradients enabled, a forward pass creates a graph node per operation and keeps the activations for the
    backward pass. `detach()` discards all of that.

    What to do

    Put `with torch.no_grad():` around the forward pass of the teacher, target network or frozen encoder.

    Fix safety

    Unsafe: other effects of the forward pass (an auxiliary loss that the module keeps) lose their graph.

    Not reported

    - Results that are used once with their graph (the generator's step of a GAN).
    - Parameters without gradients, single layers, and results that are plotted.
    - Forward passes whose activations hooks collect.
    - Code where the callee, all callers or the process disable gradients.
    - Results with a use that perflint cannot see, and methods that run a backward pass themselves.

    Measured

    1.15 times the time for a batch of 16 x 64, no difference for 512 x 1,024, but a peak of 43 MiB against 16 MiB
    (CPU, torch 2.13).

    References

    - `torch.no_grad`: https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
    - `torch.Tensor.detach`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html
    """

    code, name = "TPL314", "teacher-forward-with-grad"
    impact = Impact.MEDIUM
    listens = (Calls("detach", "detach_"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute) or ctx.grad_off(node) or is_for_a_picture(node, ctx):
            return
        if ctx.program.whole.runs_on_host(ctx.path):
            return  # networks that are trained there are small, and so is what their graphs keep
        for forward in set(forwards_behind(node.func.value, ctx, _DEPTH, computed=True, methods=True)):
            often = ctx.heat(forward) >= Heat.EPOCH or bool(ctx.loops(forward))
            if not often and ctx.kind(forward.func).tag is not Tag.MODULE:
                continue  # a model that was handed in, run once: who knows how it was set up
            if not often and ctx.tree.function_of(forward) is None:
                continue  # tried out in a script or a cell
            if not learns(forward, ctx) or has_no_graph(forward, ctx) or _is_judged_as_evaluation(forward, ctx):
                continue
            if holds_nothing(forward, ctx) or trains_itself(forward, ctx):
                continue
            if is_called_without_gradients(ctx.scope(forward), ctx) or may_differentiate(forward, ctx, losses=True):
                continue
            followed = Followed(ctx)
            if followed.ends(forward, _DEPTH) and followed.detached:
                yield self._told(forward, ctx, often=often)

    def _told(self, node: ast.Call, ctx: Context, *, often: bool) -> Finding:
        model = ctx.text(node.func)
        return self.finding(
            node,
            ctx,
            f"`{model}` records an autograd graph and keeps its activations, but the result is only ever detached.",
            advice=f"Run `{model}` under `with torch.no_grad():`.",
            fix=switch_off_for_statement(node, ctx),
            impact=None if often else Impact.LOW,
            confidence=None if ctx.kind(node.func).tag is Tag.MODULE else Confidence.MEDIUM,
        )


def _is_judged_as_evaluation(forward: ast.Call, ctx: Context) -> bool:
    """Whether code that evaluates is looked at as a whole (TPL308), or runs too seldom to matter."""
    if ctx.phase(forward).phase is not Phase.EVALUATE:
        return False
    function = ctx.tree.function_of(forward)
    if ctx.heat(forward) < Heat.STEP or is_evaluated_as_a_whole(forward, ctx):
        return True
    if function is None:
        return False
    return EVALUATES.search(function.name) is not None or bool(evaluated_elsewhere(function, ctx)[0])
