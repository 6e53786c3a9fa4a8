"""TPL311: a graph kept for a second backward that never comes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Context, Finding, Heat, Impact, Rule, has_unpacking, is_constant, keyword
from perflint.api.gradients import runs_frozen_part, walks_back_elsewhere
from perflint.api.loops import carries_names, is_assigned_in


class RetainedGraph(Rule):
    """`retain_graph=True` keeps the saved activations for a second backward pass that never runs.

    What it does

    Reports `backward(retain_graph=True)` where perflint sees only one backward pass through the graph.

    Why is this slow?

    A backward pass frees saved tensors as it runs. With `retain_graph=True` they stay as long as the loss does. It
    costs memory, not time.

    What to do

    Write `loss.backward()`. If that raises "Trying to backward through the graph a second time", a tensor of the
    previous step is still part of the graph: detach it where it enters the step.

    Fix safety

    No fix: the code does not prove that no other step shares the graph.

    Not reported

    - Files with another backward pass.
    - `create_graph`, gradients of gradients, and truncated backpropagation through time.

    Measured

    50 kept losses held 162 MB with `retain_graph=True`, nothing without it (CPU, torch 2.13).

    References

    - `torch.Tensor.backward`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html
    - Autograd mechanics: https://docs.pytorch.org/docs/stable/notes/autograd.html
    """

    code, name = "TPL311", "retained-graph"
    impact = Impact.MEDIUM
    listens = (Calls("backward"),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute) or has_unpacking(node):
            return
        if not is_constant(keyword(node, "retain_graph"), value=True) or keyword(node, "create_graph") is not None:
            return
        loss, loops = _unreduced(node.func.value), ctx.loops(node)
        if not isinstance(loss, ast.Name) or not loops or walks_back_elsewhere(node, ctx):
            return
        if not is_assigned_in(loops[0], loss, ctx) or carries_names(loops[0], ctx):
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` keeps the saved activations for a second backward pass that never runs.",
            advice=f"Write `{ctx.text(node.func)}()`.",
            impact=Impact.LOW if runs_frozen_part(loops[0], ctx) else Impact.MEDIUM,
        )


def _unreduced(loss: ast.expr) -> ast.expr:
    """The tensor whose `mean()` or `sum()` is walked back."""
    if isinstance(loss, ast.Call) and isinstance(loss.func, ast.Attribute) and loss.func.attr in ("mean", "sum"):
        return loss.func.value
    return loss
