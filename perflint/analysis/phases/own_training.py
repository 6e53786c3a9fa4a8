"""Code that runs once beside a whole training: what is edited, explained or attacked sample by sample. However hot its
function is, nothing is found there that is only worth a word on every step.
"""

from __future__ import annotations

import ast
from collections import Counter

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.loops import FEW_STEPS
from perflint.analysis.naming.phases import STEPS_OTHERWISE
from perflint.ir.callees import last_name
from perflint.ir.summary import CallFacts, FunctionFacts


def beside_own_training(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a function trains something in a loop of its own, or calls one that does, and `node` is not in that loop:
    then it runs once for all those steps, however often the function is called.
    """
    if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        node = node.body[0]  # a loop is said to be as hot as what it runs
    scope = ctx.scope(node)
    facts = ctx.program.function(scope)
    hot = ctx.program.step_loop(scope, ctx.context(node))
    if hot is not None and hot[0] == scope:
        return False  # it stands in another hot loop of that function: over the batches of an evaluation
    around = set(facts.loops_around(ctx.context(node)))
    trains = _trains_apart(facts, around)
    if trains is not None:
        passes = [call for call in facts.calls if _walks_back(call.func)]
        return trains and all(_runs_as_often(call, node, ctx) for call in passes)
    edges = ctx.program.graph.outgoing.get(scope, ())
    # What one of several algorithms does, the others need not.
    alone = Counter((edge.line, edge.index) for edge in edges)
    told = [
        (_trains_apart(ctx.program.function(edge.callee), set()), _runs_as_often(edge, node, ctx))
        for edge in edges
        if alone[edge.line, edge.index] == 1
    ]
    return (True, True) in told and not any(trains is False for trains, _ in told)


def _runs_as_often(training: CallFacts | Edge, node: ast.AST, ctx: FileFacts) -> bool:
    """Whether what leads to a training beside `node` runs whenever that does: under no guard of its own,
    `if step % 1000 == 0: fit_probe()`, and not in another branch.
    """
    contexts, context = ctx.facts(node).contexts, ctx.context(node)
    shared = set()
    while context >= 0:
        shared.add(context)
        context = contexts[context].parent
    context, guarded = training.context, False
    while context >= 0 and context not in shared:
        # What a guard inside the loop of the training lets through is the training's own matter.
        guarded = contexts[context].kind in ("guard", "switch") or (guarded and contexts[context].kind != "loop")
        context = contexts[context].parent
    return not guarded and not _is_in_other_branch(training.line, node, ctx)


def _is_in_other_branch(line: int, node: ast.AST, ctx: FileFacts) -> bool:
    child = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(outer, ast.If) and child is not outer.test:
            other = outer.orelse if child in outer.body else outer.body
            if other and other[0].lineno <= line <= (other[-1].end_lineno or line):
                return True
        child = outer
    return False


def _walks_back(func: object) -> bool:
    """`loss.backward()`, `torch.autograd.grad(loss, parameters)`"""
    return last_name(func) == "backward" or (isinstance(func, str) and func.endswith("autograd.grad"))


def _takes_step(func: object) -> bool:
    """`optimizer.step()`, not `env.step(action)`"""
    if last_name(func) != "step":
        return False
    return not (isinstance(func, str) and STEPS_OTHERWISE.search(func))


def _trains_apart(facts: FunctionFacts, around: set[int]) -> bool | None:
    """Whether all backward passes of a function stand in loops but `around` that take a step on each turn, and not only
    on one micro-batch after the other; None where it has none.
    """
    found = [set(facts.loops_around(call.context)) for call in facts.calls if _walks_back(call.func)]
    if not found:
        return None
    steps = {index for call in facts.calls if _takes_step(call.func) for index in facts.loops_around(call.context)}
    return all(
        (loops - around) & steps and not any(FEW_STEPS.search(facts.loops[index].text) for index in loops - around)
        for loops in found
    )
