"""Where gradients are switched: by a `with` around a place, by a decorator of a function."""

from __future__ import annotations

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.names.decorated import put_in_place
from perflint.analysis.names.refs import Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import FunctionFacts


def grad_switch(facts: FunctionFacts, context: int) -> str:
    """The innermost switch of gradients around a context: "no_grad", "grad" or ""."""
    while context >= 0:
        if facts.contexts[context].kind in ("no_grad", "grad"):
            return facts.contexts[context].kind
        context = facts.contexts[context].parent
    return ""


def is_run_where_handed(edge: Edge, graph: CallGraph) -> bool:
    """Whether an edge only hands a function over, to one of the project that is seen to call it: it runs there."""
    if not edge.callback:
        return False
    callers = {other.caller for other in graph.incoming.get(edge.callee, ()) if not other.callback}
    return any(
        other.index == edge.index and not other.callback and other.callee in callers
        for other in graph.outgoing.get(edge.caller, ())
    )


def is_switched_off(scope: Scope, facts: FunctionFacts, resolver: Resolver) -> bool:
    """Whether a decorator switches gradients off for the whole function."""
    return _by_name(facts) or any(
        _calls_without_grad(inner, resolver) for inner in put_in_place(scope, facts, resolver)
    )


def _by_name(facts: FunctionFacts) -> bool:
    for decorator in facts.decorators:
        arguments: tuple[object, ...] = ()
        name = decorator
        if isinstance(decorator, tuple) and decorator[0] == "call":
            name, arguments = decorator[1], decorator[2]
        last = name.rpartition(".")[2] if isinstance(name, str) else ""
        # A decorator of the project's own that chooses between the two is called after one: `smart_inference_mode`.
        if last.endswith(("no_grad", "inference_mode")):
            return arguments[:1] != (("const", "bool", False),)
        if last == "set_grad_enabled":
            return arguments[:1] == (("const", "bool", False),)
    return False


def _calls_without_grad(inner: Scope, resolver: Resolver) -> bool:
    """Whether a function calls what the one around it was given, each time under `no_grad`."""
    functions = resolver.summaries[inner.path].functions
    facts = functions[inner.function]
    around = functions.get(facts.owner)
    given = {param.name for param in around.params} if around is not None else set()
    calls = [call for call in facts.calls if call.func in given]
    return bool(calls) and all(grad_switch(facts, call.context) == "no_grad" for call in calls)
