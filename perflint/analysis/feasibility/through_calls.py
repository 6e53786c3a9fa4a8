"""What one call lets its callee come to, by the constants that it passes: `run(loader, train=False)` trains nothing."""

from __future__ import annotations

from collections.abc import Collection

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.feasibility.feasible import Conditions
from perflint.analysis.feasibility.values import Values
from perflint.analysis.feasibility.worlds import World, frame_of
from perflint.analysis.frequency.roots import RootFinder
from perflint.analysis.names.refs import Scope

#: How many calls deep a backward pass is looked for.
_DEEP = 3


class ThroughCalls:
    """Decides, for one program, what stands behind a call."""

    def __init__(self, values: Values, graph: CallGraph, roots: RootFinder, training: Collection[Scope]) -> None:
        self._values = values
        self._graph = graph
        self._roots = roots
        self._training = training

    def reaches(self, edges: tuple[Edge, ...], conditions: Conditions) -> bool:
        """Whether a function that runs through these calls, its own first, may come to code under conditions."""
        frame, scope = frame_of(list(edges)), edges[0].callee
        return all(
            self._values.of(test, scope, World.ANY, frame).truth is not (not truth) for test, truth in conditions
        )

    def trains(self, edges: tuple[Edge, ...]) -> bool:
        """Whether a function that runs through these calls may run a backward pass or take an optimizer's step."""
        scope = edges[0].callee
        if scope not in self._training:
            return False
        facts = self._values.passing.facts(scope)
        for call in facts.calls:
            if self._roots.is_training_call(call.func, call.args, scope) and self.reaches(
                edges, facts.conditions_at(call.line, call.column)
            ):
                return True
        for inner in self._graph.outgoing.get(scope, ()):
            if inner.callee not in self._training or inner.callee in {edge.callee for edge in edges}:
                continue
            if inner.index >= 0:
                place = facts.calls[inner.index]
                if not self.reaches(edges, facts.conditions_at(place.line, place.column)):
                    continue
            if len(edges) >= _DEEP or self.trains((inner, *edges)):
                return True
        return False
