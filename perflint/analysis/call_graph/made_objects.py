"""What the objects of one class are made with, where a base's constructor keeps it: of all that the other children of
the base hand to it, nothing is theirs.
"""

from __future__ import annotations

from typing import Protocol

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.names.refs import CLASS, Ref, Refs, Scope, few
from perflint.analysis.names.resolver import Resolver
from perflint.ir.callees import last_name
from perflint.ir.summary import SPREAD, FunctionFacts, Value

_INIT = "__init__"


class Graph(Protocol):
    """What is asked of the call graph."""

    resolver: Resolver
    incoming: dict[Scope, list[Edge]]

    def argument(self, edge: Edge, name: str) -> Value: ...

    def facts(self, scope: Scope) -> FunctionFacts: ...


class _Makings:
    """The calls of a constructor: those that make objects, by their class, and those of children's constructors, by
    the child. Of how many calls in all. Not told where one of them makes nobody knows what.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.direct: dict[Ref, list[Edge]] = {}
        self.of_children: dict[Ref, list[Edge]] = {}
        self.is_told = True


class MadeObjects:
    """Answers for one call graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._makings: dict[Scope, _Makings] = {}

    def passed(self, cls: Ref, scope: Scope, name: str) -> Refs:
        """What the objects of a class, and of those below it, are handed for a parameter of a base's constructor; empty
        where not all of it is known.
        """
        found: list[Ref] = []
        waiting, seen = [(scope, name)], {(scope, name)}
        children = [cls, *self._graph.resolver.below(cls)]
        bases = self._graph.resolver.mro(cls)[1:]
        while waiting:
            scope, name = waiting.pop()
            makings = self._of(scope)
            if not makings.is_told:
                return ()
            edges = [edge for child in children for edge in makings.direct.get(child, ())]
            for edge in (*edges, *(edge for child in children for edge in makings.of_children.get(child, ()))):
                found += self._graph.resolver.refs(self._graph.argument(edge, name), edge.caller)
            for base in bases:
                for edge in makings.of_children.get(base, ()):
                    value = self._graph.argument(edge, name)
                    if not isinstance(value, str):
                        return ()
                    if (edge.caller, value) not in seen:
                        seen.add((edge.caller, value))
                        waiting.append((edge.caller, value))
        return few(found)

    def _of(self, scope: Scope) -> _Makings:
        """Gone on with where more calls of the constructor are known by now."""
        edges = self._graph.incoming.get(scope, [])
        known = self._makings.setdefault(scope, _Makings())
        for edge in edges[known.calls :]:
            made = self._made(edge)
            known.is_told = known.is_told and bool(made)
            for cls, is_child in made:
                (known.of_children if is_child else known.direct).setdefault(cls, []).append(edge)
        known.calls = len(edges)
        return known

    def _made(self, edge: Edge) -> list[tuple[Ref, bool]]:
        """The classes that a call makes objects of; of one in a constructor of a child, the child."""
        if edge.index < 0 or edge.callback or edge.stands_in:
            return []
        facts = self._graph.facts(edge.caller)
        call = facts.calls[edge.index]
        if any(key in ("", SPREAD) for key, _ in call.keywords):
            return []
        if last_name(call.func) == _INIT:
            cls = self._graph.resolver.nesting.enclosing_class(edge.caller)
            return [(cls, True)] if facts.name == _INIT and cls.name else []
        refs = self._graph.resolver.refs(call.func, edge.caller)
        return [(ref, False) for ref in refs if ref.kind == CLASS and ref.path]
