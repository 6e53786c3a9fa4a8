"""Which classes a configuration names together: of many that a call may run, those are the likeliest."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.names.refs import Ref, Scope
from perflint.analysis.names.resolver import Resolver


class Pairs:
    """The calls of one program by which objects of one class run those of another. `edges` gives those of a function,
    `configured` the words of configurations, which are read when a call may run methods of several classes.
    """

    def __init__(
        self, resolver: Resolver, edges: Callable[[Scope], list[Edge]], configured: Callable[[], frozenset[str]]
    ) -> None:
        self._resolver = resolver
        self._edges = edges
        self._configured = configured
        self._rivals: dict[Scope, dict[int, tuple[Ref, ...]]] = {}
        self._naming: dict[Ref, frozenset[str]] = {}

    def is_unlikely(self, edge: Edge) -> bool:
        """Whether configurations name the class of the caller with others that the call may run, and not with this."""
        if edge.index < 0 or not self._by_name:
            return False
        rivals = self._rivals_of(edge.caller).get(edge.index, ())
        if len(rivals) < 2:
            return False
        around = self._files(self._class_of(edge.caller))
        if not around or around & self._files(self._class_of(edge.callee)):
            return False
        return any(around & self._files(rival) for rival in rivals)

    def _rivals_of(self, caller: Scope) -> dict[int, tuple[Ref, ...]]:
        """By call, the classes whose methods it may run, where that is a call of a method."""
        known = self._rivals.get(caller)
        if known is None:
            found: dict[int, dict[Ref, None]] = {}
            for edge in self._edges(caller) if self._class_of(caller).name else ():
                cls = self._class_of(edge.callee)
                if cls.name and edge.index >= 0:
                    found.setdefault(edge.index, {})[cls] = None
            known = self._rivals[caller] = {index: tuple(each) for index, each in found.items()}
        return known

    def _class_of(self, scope: Scope) -> Ref:
        return self._resolver.nesting.enclosing_class(scope)

    def _files(self, cls: Ref) -> frozenset[str]:
        """The configurations that name a class, or one below it."""
        known = self._naming.get(cls)
        if known is None:
            family = (cls, *self._resolver.hierarchy.below(cls))
            known = frozenset().union(*(self._by_name.get(item.name, frozenset()) for item in family))
            self._naming[cls] = known
        return known

    @cached_property
    def _by_name(self) -> dict[str, frozenset[str]]:
        found: dict[str, set[str]] = {}
        for word in self._configured():
            name, _, place = word.partition("@")
            if place and name.isidentifier():
                found.setdefault(name, set()).add(place)
        return {name: frozenset(places) for name, places in found.items()}
