"""Where functions surely raise: they read an attribute of their own object that nothing in the program gives it, call a
method that the class of an object lacks, hand a function an argument that it does not take, or call what does that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.feasibility.presence import Presence
from perflint.analysis.names.fitting import may_take, object_takes
from perflint.analysis.names.refs import FUNCTION, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.finding import Confidence
from perflint.ir import guards
from perflint.ir.summary import CallFacts, FunctionFacts, Value

#: How many calls deep it is asked what raises.
_DEEPEST = 2
#: A line, and a column as ast counts.
Place: TypeAlias = "tuple[int, int]"


class Raising:
    """The functions of one program."""

    def __init__(self, resolver: Resolver, graph: CallGraph, presence: Presence) -> None:
        self._resolver = resolver
        self._graph = graph
        self._presence = presence
        self._first: dict[tuple[Scope, int], Place | None] = {}

    def before(self, scope: Scope, place: Place) -> bool:
        """Whether a function raises whenever it runs, before it comes to a place."""
        first = self._raised(scope)
        return (first is not None and first < place) or self._is_called_too_late(scope)

    def never_enters(self, edge: Edge) -> bool:
        """Whether a function raises whenever it runs, before a call or at it."""
        first = self._raised(edge.caller)
        return (first is not None and first <= self._place_of(edge)) or self._is_called_too_late(edge.caller)

    def _raised(self, scope: Scope, depth: int = _DEEPEST) -> Place | None:
        key = scope, depth
        if key not in self._first:
            self._first[key] = self._first_of(scope, depth)
        return self._first[key]

    def _is_called_too_late(self, scope: Scope) -> bool:
        """Whether a function within another one is only called where that has raised."""
        outer, is_inner, _ = scope.function.rpartition(".<locals>.")
        first = self._raised(Scope(scope.path, outer)) if is_inner else None
        calls = self._graph.incoming.get(scope, ())
        if first is None or not calls:
            return False
        return all(
            not edge.callback and edge.index >= 0 and edge.caller.function == outer and first < self._place_of(edge)
            for edge in calls
        )

    def _place_of(self, edge: Edge) -> Place:
        if edge.index < 0:
            return edge.line, 0
        call = self._facts(edge.caller).calls[edge.index]
        return call.line, call.column

    def _facts(self, scope: Scope) -> FunctionFacts:
        return self._resolver.summaries[scope.path].functions[scope.function]

    def _first_of(self, scope: Scope, depth: int) -> Place | None:
        facts = self._facts(scope)
        if any(item.detail == guards.RARE for item in facts.contexts):
            return None  # what it raises may be handled
        found = [(call.line, call.column) for call in facts.calls if self._fails(call, facts, scope)]
        if facts.in_class:
            found += [place for name, place in _own_reads(facts) if self._presence.is_missing(name, scope)]
        if depth:
            found += self._of_callees(scope, facts, depth)
        return min(found, default=None)

    def _of_callees(self, scope: Scope, facts: FunctionFacts, depth: int) -> Iterator[Place]:
        """The calls that a function surely makes of what raises whenever it runs."""
        callees: dict[int, list[Edge]] = {}
        for edge in self._graph.outgoing.get(scope, ()):
            if edge.index >= 0 and not edge.callback:
                callees.setdefault(edge.index, []).append(edge)
        for index, edges in callees.items():
            call = facts.calls[index]
            if len(edges) == 1 and edges[0].confidence is Confidence.HIGH and edges[0].callee != scope:
                is_run = not self._facts(edges[0].callee).is_generator and facts.is_sure(call.line, call.column)
                if is_run and self._raised(edges[0].callee, depth - 1) is not None:
                    yield call.line, call.column

    def _fails(self, call: CallFacts, facts: FunctionFacts, scope: Scope) -> bool:
        """Whether a call that a function surely makes raises: there is no such method, or it takes other arguments."""
        if type(call.func) is not str or not facts.is_sure(call.line, call.column):
            return False
        base, _, method = call.func.rpartition(".")
        if base.startswith("self.") and self._presence.is_lacking(base, method, scope):
            return True
        if method == "forward" and base.startswith("self.") and base.count(".") == 1:
            base, method = "self", base.removeprefix("self.")
        if base == "self":
            part = self._presence.part_of(method, scope)
            return part is not None and not object_takes(self._facts(part), call.args, call.keywords)
        refs = self._resolver.refs(call.func, scope) if not base else ()
        if len(refs) != 1 or refs[0].kind != FUNCTION:
            return False
        called = self._resolver.summaries[refs[0].path].functions[refs[0].name]
        return not called.decorators and not may_take(called, call.args, call.keywords)


def _own_reads(facts: FunctionFacts) -> Iterator[tuple[str, Place]]:
    """The attributes of its own object that a function reads whenever it runs: where its calls and loops name them."""
    for call in facts.calls:
        if facts.is_sure(call.line, call.column):
            for value in (call.func, *call.args, *(value for _, value in call.keywords)):
                yield from ((name, (call.line, call.column)) for name in _attributes(value))
    for loop in facts.loops:
        if loop.kind != "comprehension" and facts.is_sure(loop.line, loop.column):
            yield from ((name, (loop.line, loop.column)) for name in _attributes(loop.iterable))


def _attributes(value: Value) -> Iterator[str]:
    """The attributes of `self` that a value certainly reads: of a choice, one arm need not run."""
    if type(value) is str:
        first, _, rest = value.partition(".")
        if first == "self" and rest:
            yield rest.partition(".")[0]
    elif type(value) is tuple and value[0] in ("item", "attr"):
        yield from _attributes(value[1])
    elif type(value) is tuple and value[0] == "seq":
        for item in value[1]:
            yield from _attributes(item)
    elif type(value) is tuple and value[0] == "call":
        for item in (value[1], *value[2], *(item for _, item in value[3])):
            yield from _attributes(item)
