"""Code that runs once beside a whole training: what is edited, explained or attacked sample by sample."""

from __future__ import annotations

import ast
from collections import Counter

from perflint.api import Context, FunctionFacts, pattern

from ._callees import last_of

#: Loops of a handful of steps, of one part of a model.
_FEW = pattern(r"critic|disc|(?:^|_)[dgn]_(?:steps|iters|updates)|range\([1-9]\)")


def beside_own_training(node: ast.AST, ctx: Context) -> bool:
    """Whether a function trains something in a loop of its own, or calls one that does, and `node` is not in that loop:
    then it runs once for all those steps, however often the function is called.
    """
    scope = ctx.scope(node)
    facts = ctx.program.function(scope)
    hot = ctx.program.step_loop(scope, ctx.context(node))
    if hot is not None and hot[0] == scope:
        return False  # it stands in another hot loop of that function: over the batches of an evaluation
    around = set(facts.loops_around(ctx.context(node)))
    trains = _trains_apart(facts, around)
    if trains is not None:
        return trains
    edges = ctx.program.graph.outgoing.get(scope, ())
    # What one of several algorithms does, the others need not.
    alone = Counter((edge.line, edge.index) for edge in edges)
    below = {edge.callee for edge in edges if alone[edge.line, edge.index] == 1}
    told = [_trains_apart(ctx.program.function(item), set()) for item in below]
    return True in told and False not in told


def _walks_back(func: object) -> bool:
    """`loss.backward()`, `torch.autograd.grad(loss, parameters)`"""
    return last_of(func) == "backward" or (isinstance(func, str) and func.endswith("autograd.grad"))


def _trains_apart(facts: FunctionFacts, around: set[int]) -> bool | None:
    """Whether all backward passes of a function stand in loops but `around` that take a step on each turn, and not only
    on one micro-batch after the other; None where it has none.
    """
    found = [set(facts.loops_around(call.context)) for call in facts.calls if _walks_back(call.func)]
    if not found:
        return None
    steps = {
        index for call in facts.calls if last_of(call.func) == "step" for index in facts.loops_around(call.context)
    }
    return all(
        (loops - around) & steps and not any(_FEW.search(facts.loops[index].text) for index in loops - around)
        for loops in found
    )
