"""Routes: the chain of calls from a root of heat to a line, as findings print it."""

from __future__ import annotations

import itertools

from perflint.analysis.frequency.heat import HeatMap
from perflint.analysis.names.refs import Scope
from perflint.finding import Confidence, Heat, Hop
from perflint.ir.summary import MODULE, FunctionFacts

_LONGEST = 40


def route_to(heat: HeatMap, scope: Scope, context: int) -> tuple[Heat, tuple[Hop, ...], Confidence]:
    """How hot code in `context` of `scope` is, by which way, and how sure every step of the way is."""
    hops: list[Hop] = []
    confidence = Confidence.HIGH
    facts = heat.resolver.facts(scope)
    base = heat.reason(scope).heat
    heats = heat.contexts(scope, facts, base)
    result = heats[context] if context >= 0 else base
    if result == Heat.ONCE:
        return Heat.ONCE, (), Confidence.HIGH
    for _ in range(_LONGEST):
        reason = heat.reason(scope)
        here = heat.contexts(scope, facts, base)
        loop = decisive_loop(heat, scope, facts, context, here, base)
        if loop is not None:
            found = heat.roots.loops[scope, loop]
            confidence = min(confidence, found.confidence)
            hops.append(Hop(scope.path, facts.loops[loop].line, facts.loops[loop].text))
            around = hot_loop_around(heat, scope, facts, loop)
            if around is not None:
                hops.append(Hop(scope.path, facts.loops[around].line, facts.loops[around].text))
            break
        if reason.root is not None:
            confidence = min(confidence, reason.root.confidence)
            hops.append(Hop(scope.path, facts.line, reason.root.text))
            break
        if reason.edge is None:
            break
        edge = reason.edge
        confidence = min(confidence, edge.confidence)
        hops.append(Hop(edge.caller.path, edge.line, display_name(scope.function)))
        scope, context, base = edge.caller, edge.context, reason.base
        facts = heat.resolver.facts(scope)
    return result, tuple(reversed(hops)), confidence


def display_name(qualname: str) -> str:
    """`Net.forward`, `train.step`: a qualname without Python's `<locals>`."""
    if qualname == MODULE:
        return "module level"
    name = qualname.partition("~")[0].replace(".<locals>", "")
    return "lambda" if name.startswith("<lambda:") else name


def decisive_loop(
    heat: HeatMap, scope: Scope, facts: FunctionFacts, context: int, heats: list[Heat], base: Heat
) -> int | None:
    """The loop of this function that makes `context` hotter than the function itself, outermost of equals."""
    target = heats[context] if context >= 0 else base
    found = None
    while context >= 0:
        item = facts.contexts[context]
        if item.kind == "loop":
            loop = heat.roots.loops.get((scope, int(item.detail)))
            outer = heats[item.parent] if item.parent >= 0 else base
            if loop is not None and heats[context] > outer and (found is None or heats[context] >= target):
                found = int(item.detail)
                if loop.heat >= target:
                    return found
        context = item.parent
    return found


def hot_loop_around(heat: HeatMap, scope: Scope, facts: FunctionFacts, loop: int) -> int | None:
    """The loop over steps that a loop over parts of one stands in: it tells what the parts are parts of."""
    for outer in facts.loops_around(facts.loops[loop].context):
        found = heat.roots.loops.get((scope, outer))
        if found is not None and found.heat >= Heat.STEP:
            return outer
    return None


def function_of(hop: Hop) -> str:
    """The function that a hop names first: `Trainer.step`."""
    return "".join(itertools.takewhile(lambda sign: sign.isalnum() or sign in "._", hop.text))
