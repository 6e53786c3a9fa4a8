"""Functions that run only while a module is made: its constructor, and what nothing but that calls."""

from __future__ import annotations

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.names.refs import CLASS, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import FunctionFacts

#: How many calls lead from a constructor to what is done there.
_FURTHEST = 4


class MakingModules:
    """Answers for one program."""

    def __init__(self, resolver: Resolver, graph: CallGraph) -> None:
        self._resolver = resolver
        self._graph = graph

    def runs_only_there(self, scope: Scope, furthest: int = _FURTHEST) -> bool:
        """Whether nothing else runs a function: no other call is of it, nor of what goes by its name, and it is handed
        to nobody.
        """
        facts = self._resolver.summaries[scope.path].functions[scope.function]
        if facts.name == "__init__":
            return self._makes_module(scope, facts)
        edges = [edge for edge in self._graph.incoming.get(scope, ()) if edge.caller != scope]
        if not edges or furthest == 0 or any(edge.callback or edge.index < 0 for edge in edges):
            return False
        if self._may_be_called_elsewhere(facts.name):
            return False
        return all(self.runs_only_there(caller, furthest - 1) for caller in sorted({edge.caller for edge in edges}))

    def _may_be_called_elsewhere(self, name: str) -> bool:
        """Whether some call is of what goes by a name, and nobody can tell what that is."""
        unresolved = self._graph.unresolved
        named = self._resolver.nesting.calls_of((name,))
        return any(item.call is call for item in named for call in unresolved.get(item.scope, ()))

    def _makes_module(self, scope: Scope, facts: FunctionFacts) -> bool:
        return bool(facts.in_class) and self._resolver.hierarchy.is_module(Ref(CLASS, scope.path, facts.in_class))
