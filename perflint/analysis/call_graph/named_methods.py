"""Methods that are called by a name that is handed over: `self.call("after_step")` runs `getattr(hook, name)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.names.refs import INSTANCE, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.finding import Confidence
from perflint.ir.summary import FunctionFacts, Value

#: Past this many methods of one name, a name says nothing about which of them runs.
_MOST = 40


class Graph(Protocol):
    """What is asked of the call graph that the calls are added to."""

    incoming: dict[Scope, list[Edge]]

    def add(self, edge: Edge) -> None: ...

    def argument(self, edge: Edge, name: str) -> Value: ...


def connect_named_methods(resolver: Resolver, graph: Graph) -> None:
    """Add an edge from each call that hands over a method's name to the methods of that name."""
    for scope, facts in resolver.nesting.functions:
        if not facts.params:
            continue
        for receiver, parameter in _looked_up(facts):
            for edge in list(graph.incoming.get(scope, ())):
                if edge.callback or edge.index < 0:
                    continue
                given = graph.argument(edge, parameter)
                if isinstance(given, tuple) and given[0] == "const" and given[1] == "str" and given[2]:
                    for method in _methods(given[2], receiver, scope, resolver):
                        graph.add(edge._replace(callee=method, confidence=Confidence.MEDIUM, callback=True))


def _looked_up(facts: FunctionFacts) -> set[tuple[Value, str]]:
    """What methods are looked up in by a parameter's value, and called, each with that parameter."""
    found = set()
    names: set[str] | None = None
    for call in facts.calls:
        func = call.func
        for value in facts.binds.get(func, ()) if isinstance(func, str) else (func,):
            if isinstance(value, tuple) and value[0] == "call" and value[1] == "getattr" and len(value[2]) > 1:
                names = {param.name.lstrip("=") for param in facts.params} if names is None else names
                if isinstance(value[2][1], str) and value[2][1] in names:
                    found.add((value[2][0], value[2][1]))
    return found


def _methods(name: str, receiver: Value, scope: Scope, resolver: Resolver) -> Iterator[Scope]:
    refs = [ref for ref in resolver.refs(receiver, scope) if ref.kind == INSTANCE]
    if refs:
        for ref in refs:
            method = resolver.method(ref, name)
            if method is not None:
                yield Scope(method.path, method.name)
        return
    methods = [other for other, facts in resolver.nesting.by_name.get(name, ()) if facts.in_class]
    if len(methods) <= _MOST:
        yield from methods
