"""Attributes that are switches of a mode, whatever they are called: set to True once, and left so while steps run."""

from __future__ import annotations

from collections.abc import Callable

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.names.module_writes import ModuleWrites
from perflint.analysis.names.refs import Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.questions import Question


class Switches:
    """Answers for one program. `guard` says what a question of a test in a function comes to."""

    def __init__(self, resolver: Resolver, graph: CallGraph, guard: Callable[[Question, Scope], str | None]) -> None:
        self._resolver = resolver
        self._graph = graph
        self._guard = guard
        self._writes = ModuleWrites(resolver)
        #: By attribute and class; those that are being looked at are held to be none.
        self._known: dict[tuple[str, Ref], bool] = {}

    def is_switch(self, name: str, cls: Ref) -> bool:
        """Whether `self.name` of a class is given nothing but True and False as they are written, and True where no
        test of a turn stands around it, nor around the call of the method that gives it. Where such a test guards a
        call, as of an evaluation now and then, the same function takes it back.
        """
        known = self._known.get((name, cls))
        if known is None:
            self._known[name, cls] = False
            known = self._known[name, cls] = self._is_switch(name, cls)
        return known

    def _is_switch(self, name: str, cls: Ref) -> bool:
        given = self._given(name, cls)
        if given is None or self._writes.from_outside(name):
            return False
        always = False
        #: The functions that set it under a test of turns, by what they set it to.
        now_and_then: dict[bool, set[Scope]] = {True: set(), False: set()}
        for method, truth in given:
            found = self._places(method, name, truth=truth)
            if found is None:
                return False
            for caller, is_guarded in found:
                if is_guarded:
                    now_and_then[truth].add(caller)
                else:
                    always = always or truth
        return always and now_and_then[True] == now_and_then[False]

    def _given(self, name: str, cls: Ref) -> list[tuple[Scope, bool]] | None:
        """The methods that set it, with what to; None where that is not plain to see."""
        hierarchy = self._resolver.hierarchy
        found: dict[tuple[Scope, bool], None] = {}
        for owner in dict.fromkeys([*hierarchy.mro(cls), *hierarchy.below(cls)]):
            facts = hierarchy.facts(owner)
            if facts is None:
                continue  # a library's
            if name in facts.unclear or name in facts.computed:
                return None
            for value, where in facts.attributes.get(name, ()):
                if not isinstance(value, tuple) or value[0] != "const" or not isinstance(value[2], bool):
                    return None
                found[Scope(owner.path, where), value[2]] = None
        return list(found)

    def _places(self, method: Scope, name: str, *, truth: bool) -> list[tuple[Scope, bool]] | None:
        """The functions by which a method sets it, each with whether under a test of turns."""
        facts = self._resolver.summaries[method.path].functions.get(method.function)
        if facts is None or facts.name == "__init__":
            return [(method, False)]
        noted = [true for key, true, _ in facts.tests if key == f"self.{name}="]
        if truth and any(self._guard(question, method) is not None for question in noted):
            return None
        found = []
        for edge in self._graph.incoming.get(method, ()):
            if edge.callback:
                return None
            found.append((edge.caller, self._is_guarded(edge)))
        return found

    def _is_guarded(self, edge: Edge) -> bool:
        facts = self._resolver.summaries[edge.caller.path].functions[edge.caller.function]
        context = edge.context
        while context >= 0:
            item = facts.contexts[context]
            if item.kind == "guard":
                return True
            if item.kind == "asked" and self._guard(facts.questions[int(item.detail)], edge.caller) is not None:
                return True
            context = item.parent
        return False
