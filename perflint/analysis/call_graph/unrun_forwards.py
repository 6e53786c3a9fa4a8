"""Forwards of modules that no call runs: one class of the program has all objects of the module's class, calls other
methods of them, and gives nothing what their `forward` cannot do without. Those other calls become known by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.names.fitting import has_all, may_take
from perflint.analysis.names.refs import CLASS, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.finding import Confidence
from perflint.ir.callees import last_name
from perflint.ir.summary import MODULE, CallFacts, Value

#: What containers of torch hand to the `forward` of what is in them, and what whoever looks at a model would.
_OF_CONTAINERS = 1
#: What leads from a module to all that is in it.
_WALKS = frozenset({"children", "named_children", "modules", "named_modules", "_modules"})
#: What runs a forward by its name.
_RUNNING = frozenset({"forward", "__call__"})
#: What makes numbers and texts.
_PLAIN = frozenset({"int", "float", "bool", "str", "len"})
#: What calls nothing of what it is given.
_LOOKING = _PLAIN | {"isinstance", "hasattr", "enumerate", "zip", "reversed", "range", "list", "tuple", "print"}


def unrun_forwards(forwards: Iterable[Scope], resolver: Resolver, graph: CallGraph) -> frozenset[Scope]:
    """Those of the forwards of a program's modules that no call runs."""
    return _Unrun(resolver, graph).of(forwards)


class _Unrun:
    """Asked once of a program."""

    def __init__(self, resolver: Resolver, graph: CallGraph) -> None:
        self._resolver = resolver
        self._graph = graph

    def of(self, forwards: Iterable[Scope]) -> frozenset[Scope]:
        found = [scope for scope in forwards if self._may_be_unrun(scope)]
        owners = self._owners({self._class_name(scope) for scope in found}) if found else {}
        edges: dict[Scope, list[Edge]] = {}
        for scope in found:
            owner = owners.get(self._class_name(scope))
            if owner is not None and (others := self._calls_of_others(scope, owner)):
                edges[scope] = others
        # All are asked for before the graph knows more than it did.
        for edge in [edge for others in edges.values() for edge in others]:
            known = self._graph.outgoing.get(edge.caller, ())
            if not any(other.index == edge.index and other.callee == edge.callee for other in known):
                self._graph.add(edge)
        return frozenset(edges)

    def _class_name(self, scope: Scope) -> str:
        return self._resolver.facts(scope).in_class.rpartition(".")[2]

    def _may_be_unrun(self, scope: Scope) -> bool:
        """Whether no call is known to run a forward, and none of a container does: it needs more than one argument."""
        facts = self._resolver.facts(scope)
        if scope in self._graph.incoming or facts.decorators or facts.owner != facts.in_class:
            return False
        cls = self._resolver.summaries[scope.path].classes.get(facts.in_class)
        return cls is not None and not cls.decorators and not has_all(facts, (None,) * _OF_CONTAINERS, ())

    def _owners(self, names: set[str]) -> dict[str, Ref]:
        """By the name of a class, the class whose methods alone name it: others may have got it by an import, a text or
        as a base.
        """
        users: dict[str, set[Ref]] = {name: set() for name in names}
        for path, summary in self._resolver.summaries.items():
            unclear = {name.rpartition(".")[2] for bound, name in summary.imports.items() if not name.endswith(bound)}
            unclear.update(summary.texts.split())
            for statement in summary.statements:
                unclear.update(() if statement.imports else statement.identifiers.split())
            for name in names & unclear:
                users[name].add(Ref(CLASS, path, ""))
            for facts in summary.functions.values():
                for name in names.intersection(facts.identifiers.split()):
                    if facts.in_class.rpartition(".")[2] != name:
                        users[name].add(Ref(CLASS, path, facts.in_class))
        found = {name: next(iter(refs)) for name, refs in users.items() if len(refs) == 1}
        return {name: ref for name, ref in found.items() if ref.name}

    def _calls_of_others(self, scope: Scope, owner: Ref) -> list[Edge]:
        """The calls by which an owner runs other methods of the class of a forward; none where any call may run it."""
        cls = Ref(CLASS, scope.path, self._resolver.facts(scope).in_class)
        inside = self._methods(owner, *self._resolver.hierarchy.below(owner))
        keeping = self._keeping(owner, self._class_name(scope))
        found = self._edges_to_others(inside, owner, cls, keeping)
        if not found or self._resolver.hierarchy.below(cls):
            return []
        if any(_hands_on(call, keeping) for caller in inside for call in self._resolver.facts(caller).calls):
            return []
        near = {*inside, *self._methods(cls)}
        near |= {edge.callee for caller in inside for edge in self._graph.outgoing.get(caller, ())}
        files = self._files_with_a_way_in(keeping, near)
        is_run = any(
            self._fits(call, scope)
            for caller, calls in self._graph.unresolved.items()
            if caller in near or caller.path in files
            for call in calls
            if caller in near or self._may_be_of_an_object(call, caller, keeping)
        )
        return [] if is_run else found

    def _methods(self, *classes: Ref) -> list[Scope]:
        """The functions that stand in some classes."""
        return [scope for cls in classes for scope in self._by_class.get(cls, ())]

    @cached_property
    def _by_class(self) -> dict[Ref, list[Scope]]:
        found: dict[Ref, list[Scope]] = {}
        for scope, _ in self._resolver.nesting.functions:
            if scope.function != MODULE:
                found.setdefault(self._resolver.nesting.enclosing_class(scope), []).append(scope)
        return found

    def _edges_to_others(self, inside: list[Scope], owner: Ref, cls: Ref, keeping: set[str]) -> list[Edge]:
        """Calls of methods of a class that are not an owner's own, of what that keeps: which of the classes that it has
        there, each turn decides.
        """
        hierarchy = self._resolver.hierarchy
        own, others = hierarchy.facts(cls), hierarchy.facts(owner)
        if own is None or others is None:
            return []
        names = {name for name in own.methods if not name.startswith("__")} - {*others.methods, "forward"}
        return [
            Edge(caller, Scope(cls.path, f"{cls.name}.{name}"), call.context, call.line, Confidence.MEDIUM, index,
                 stands_in=True)
            for caller in inside
            for index, call in enumerate(self._resolver.facts(caller).calls)
            if (name := last_name(call.func)) in names and not keeping.isdisjoint(_own_names(_receiver(call.func)))
        ]  # fmt: skip

    def _files_with_a_way_in(self, keeping: set[str], near: set[Scope]) -> set[str]:
        """The files where something else than an owner names what it keeps its objects in, or walks through modules."""
        ways = _WALKS | keeping
        return {
            scope.path
            for scope, facts in self._resolver.nesting.functions
            if scope not in near and not ways.isdisjoint(facts.identifiers.split())
        }

    def _keeping(self, owner: Ref, name: str) -> set[str]:
        """The attributes and methods of an owner that may have objects of a class: those that are given, or give back,
        what a method has that names the class, or what one of the others has.
        """
        facts, summary = self._resolver.hierarchy.facts(owner), self._resolver.summaries[owner.path]
        if facts is None:
            return set()
        naming = {key for key, item in summary.functions.items() if name in item.identifiers.split()}
        found = {*facts.unclear, *(key.rpartition(".")[2] for key in naming)} - {"__init__"}
        before = -1
        while before < len(found):
            before = len(found)
            for key, values in facts.attributes.items():
                if any(_may_hold(value, found, named=where in naming) for value, where in values):
                    found.add(key)
            for method in facts.methods:
                given = summary.functions.get(f"{owner.name}.{method}")
                if given is not None and any(_may_hold(value, found) for value in given.returns):
                    found.add(method)
        return found

    def _may_be_of_an_object(self, call: CallFacts, scope: Scope, keeping: set[str]) -> bool:
        """Whether a call is of what goes by a plain name, is kept somewhere or taken out of something, and not of a
        method of that.
        """
        func = call.func
        if func is None or (type(func) is tuple and func[0] != "attr") or (type(func) is str and "." not in func):
            return True
        name = last_name(func)
        classes = self._resolver.summaries[scope.path].classes.values()
        return name in _RUNNING or name in keeping or any(name in facts.attributes for facts in classes)

    def _fits(self, call: CallFacts, scope: Scope) -> bool:
        """Whether a call hands over what a forward needs, and nothing that it does not take."""
        facts = self._resolver.facts(scope)
        return may_take(facts, call.args, call.keywords) and has_all(facts, call.args, call.keywords)


def _may_hold(value: Value, keeping: set[str], *, named: bool = False) -> bool:
    """Whether a value may be an object, or hold one: a number or text does not, written where the class is `named`."""
    if type(value) is tuple and (value[0] == "const" or (value[0] == "call" and value[1] in _PLAIN)):
        return False
    return named or not keeping.isdisjoint(_own_names(value))


def _own_names(value: Value) -> set[str]:
    """The attributes and methods of `self` that a value is of, or is an item of, or is called: not what those have."""
    while type(value) is tuple and value[0] in ("item", "call"):
        value = value[1]
    return {value[5:]} if type(value) is str and value.startswith("self.") else set()


def _receiver(func: Value) -> Value:
    """What a method is called of."""
    return (
        func.rpartition(".")[0] if type(func) is str else func[1] if type(func) is tuple and func[0] == "attr" else None
    )


def _hands_on(call: CallFacts, keeping: set[str]) -> bool:
    """Whether a call gives what an owner keeps to something that may call it."""
    values = [*call.args, *(value for _, value in call.keywords)]
    return call.func not in _LOOKING and not all(keeping.isdisjoint(_own_names(value)) for value in values)
