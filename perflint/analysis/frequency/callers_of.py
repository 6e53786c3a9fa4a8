"""Functions that make some call, themselves or through what they surely call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.names.declared import is_abstract
from perflint.analysis.names.refs import Scope
from perflint.finding import Confidence
from perflint.ir.summary import CallFacts, FunctionFacts

#: Whether a call of a function is one that is looked for.
Wanted: TypeAlias = Callable[[CallFacts, Scope], bool]


def outside_loops(facts: FunctionFacts, context: int) -> bool:
    return facts.innermost_loop(context) is None


class CallersOf:
    """Answers for one program. `telling` are the calls of each function that may be looked for."""

    def __init__(self, graph: CallGraph, telling: Mapping[Scope, Sequence[CallFacts]]) -> None:
        self._graph = graph
        self._telling = telling
        #: By what is looked for, the functions that call it anywhere.
        self._making: dict[Wanted, set[Scope]] = {}

    def forget(self) -> None:
        """All roots are found."""
        self._making.clear()

    def functions(
        self,
        wanted: Wanted,
        stops: Callable[[FunctionFacts, Scope], bool],
        inside: Callable[[FunctionFacts, int], bool] | None = None,
    ) -> set[Scope]:
        """Functions that make a wanted call outside their loops, themselves or through what they surely call.

        What `stops` is neither found nor followed to its callers. `inside` says which loops do not count.
        """
        inside = inside or outside_loops
        found: set[Scope] = set()
        waiting: list[Scope] = []
        for scope, calls in self._telling.items():
            facts = self._facts(scope)
            if any(inside(facts, call.context) and wanted(call, scope) for call in calls) and not stops(facts, scope):
                found.add(scope)
                waiting.append(scope)
        while waiting:
            callee = waiting.pop()
            for edge in self._graph.incoming.get(callee, ()):
                facts = self._facts(edge.caller)
                # A custom autograd function's `backward` or a wrapper of an optimizer is no training step.
                if (
                    edge.caller not in found
                    and edge.confidence == Confidence.HIGH
                    and inside(facts, edge.context)
                    and not stops(facts, edge.caller)
                    and self.mostly(edge, found, wanted)
                ):
                    found.add(edge.caller)
                    waiting.append(edge.caller)
        return found

    def mostly(self, edge: Edge, found: set[Scope], wanted: Wanted) -> bool:
        """Whether most of what a call may run is among the functions `found`, or makes the wanted call in its loops: of
        a base's method, one of many that override it says nothing of the others.
        """
        beside = [
            other.callee
            for other in self._graph.outgoing.get(edge.caller, ())
            if other.index == edge.index and not is_abstract(self._facts(other.callee))
        ]
        if edge.index < 0 or 2 * sum(callee in found for callee in beside) >= len(beside):
            return True
        anywhere = self._anywhere(wanted)
        return 2 * sum(callee in anywhere for callee in beside) >= len(beside)

    def _anywhere(self, wanted: Wanted) -> set[Scope]:
        """Functions that make a wanted call at all, themselves or through what they surely call."""
        found = self._making.get(wanted)
        if found is None:
            found = self._making[wanted] = {
                scope for scope, calls in self._telling.items() if any(wanted(call, scope) for call in calls)
            }
            waiting = list(found)
            while waiting:
                for edge in self._graph.incoming.get(waiting.pop(), ()):
                    if edge.caller not in found and edge.confidence == Confidence.HIGH:
                        found.add(edge.caller)
                        waiting.append(edge.caller)
        return found

    def _facts(self, scope: Scope) -> FunctionFacts:
        return self._graph.facts(scope)
