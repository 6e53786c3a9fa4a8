"""Data sets that take their items out of others: `self.voices[index]` in a `__getitem__` runs the one of those."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.names.refs import INSTANCE, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.finding import Confidence
from perflint.ir.summary import FunctionFacts, Value


class Graph(Protocol):
    """What is asked of the call graph that such edges are added to."""

    def add(self, edge: Edge) -> None: ...


def connect_items(resolver: Resolver, graph: Graph) -> None:
    """Add an edge for each object of the project that the `__getitem__` of a class keeps and indexes."""
    for scope, facts in resolver.nesting.by_name.get("__getitem__", ()):
        if not facts.in_class:
            continue
        methods = {
            Scope(method.path, method.name)
            for held in dict.fromkeys(_indexed(facts))
            for ref in resolver.refs(held, scope)
            if ref.kind == INSTANCE and (method := resolver.method(ref, "__getitem__")) is not None
        }
        for callee in sorted(methods - {scope}):
            graph.add(Edge(scope, callee, -1, facts.line, Confidence.HIGH, -1))


def _indexed(facts: FunctionFacts) -> Iterator[Value]:
    """What a function indexes of its own object's attributes."""
    waiting: list[object] = [facts.returns, facts.binds, *((call.args, call.keywords) for call in facts.calls)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, tuple):
            if len(value) == 3 and value[0] == "item" and _is_own(value[1]):
                yield value[1]
            waiting += [part for part in value if isinstance(part, tuple)]


def _is_own(value: Value) -> bool:
    """Whether a value is an attribute of the object itself, or an element of one."""
    while isinstance(value, tuple) and value[0] == "item":
        value = value[1]
    return isinstance(value, str) and value.startswith("self.") and value.count(".") == 1
