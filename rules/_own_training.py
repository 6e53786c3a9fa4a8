"""Code that runs once beside a whole training: what is edited, explained or attacked sample by sample."""

from __future__ import annotations

import ast

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
    below = {edge.callee for edge in ctx.program.graph.outgoing.get(scope, ())}
    return any(_trains_apart(ctx.program.function(item), set()) for item in below if ctx.program.trains(item))


def _trains_apart(facts: FunctionFacts, around: set[int]) -> bool | None:
    """Whether all backward passes of a function stand in loops but `around`; None where it has none."""
    found = [set(facts.loops_around(call.context)) for call in facts.calls if last_of(call.func) == "backward"]
    if not found:
        return None
    return all(
        loops - around and not any(_FEW.search(facts.loops[index].text) for index in loops - around) for loops in found
    )
