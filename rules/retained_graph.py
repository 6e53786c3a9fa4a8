"""TPL311: a graph kept for a second backward that never comes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    FUNCTION,
    Calls,
    Context,
    Effect,
    Finding,
    Heat,
    Impact,
    Ref,
    Rule,
    callee_name,
    definition_of,
    has_unpacking,
    is_constant,
    keyword,
    walk,
)

#: What goes through the graph of a loss.
_WALKS = ("backward", "manual_backward", "grad", "jacobian", "hessian")


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
        if not isinstance(loss, ast.Name) or not loops or _walks_back_elsewhere(node, ctx):
            return
        if not _is_made_in(loops[0], loss, ctx) or _carries_state(loops[0], ctx):
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` keeps the saved activations for a second backward pass that never runs.",
            advice=f"Write `{ctx.text(node.func)}()`.",
        )


def _unreduced(loss: ast.expr) -> ast.expr:
    """The tensor whose `mean()` or `sum()` is walked back."""
    if isinstance(loss, ast.Call) and isinstance(loss.func, ast.Attribute) and loss.func.attr in ("mean", "sum"):
        return loss.func.value
    return loss


def _walks_back_elsewhere(node: ast.Call, ctx: Context) -> bool:
    """Whether the function, one that leads to it, or one that either runs, goes through a graph as well."""
    scope = ctx.scope(node)
    ways = [edge.caller for edge in ctx.program.callers(scope)]
    homes = [found for at in ways if (found := definition_of(at, ctx)) is not None]
    regions = [(ctx.tree.function_of(node) or ctx.tree.module, ctx), *homes]
    return any(
        isinstance(part, ast.Call)
        and part is not node
        and (callee_name(part) in _WALKS or there.effects(part).does(Effect.BACKWARD))
        and there.project_target(part.func) != Ref(FUNCTION, scope.path, scope.function)
        for region, there in regions
        for part in walk(region)
    )


def _is_made_in(loop: ast.stmt, loss: ast.Name, ctx: Context) -> bool:
    """Whether every loss that may arrive is made anew in the same turn, from no earlier one."""
    inside = {id(part) for part in walk(loop)}
    definitions = ctx.inference.flow.definitions(loss)
    return bool(definitions) and all(
        isinstance(definition.node, ast.Assign) and id(definition.node) in inside for definition in definitions
    )


def _carries_state(loop: ast.stmt, ctx: Context) -> bool:
    """Whether a turn reads a name before it binds it: a hidden state that links the graphs of two turns."""
    inside = {id(part) for part in walk(loop)}
    for part in walk(loop):
        if isinstance(part, ast.AugAssign):
            continue
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            nodes = [id(definition.node) in inside for definition in ctx.inference.flow.definitions(part)]
            if any(nodes) and not all(nodes):
                return True
    return False
