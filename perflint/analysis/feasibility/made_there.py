"""The object that a call runs is one of those made for its name: `model(x)` runs no class that the same file makes for
`model` under an option that is off, whatever another program makes of that class.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.feasibility.makings import Making, Makings
from perflint.analysis.names.refs import CLASS, INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import Value

#: What calling an object runs.
_CALLED = ("forward", "__call__")


class MadeThere:
    """What the names hold that the calls of one program call."""

    def __init__(self, resolver: Resolver, makings: Makings) -> None:
        self._resolver = resolver
        self._makings = makings
        self._known: dict[tuple[str, Scope, Ref], tuple[Making, ...]] = {}

    def of(self, edge: Edge, owner: Ref) -> tuple[Making, ...]:
        """The calls that make the object which an edge runs a method of; none where its name may hold another one that
        is seen to be made nowhere.
        """
        name = self._object(edge)
        if not name:
            return ()
        key = name, edge.caller, owner
        if key not in self._known:
            self._known[key] = tuple(self._found(name, edge.caller, owner))
        return self._known[key]

    def _object(self, edge: Edge) -> str:
        """The name of the object whose method an edge runs, empty where it is no name."""
        if edge.index < 0 or edge.callback:
            return ""
        func = self._resolver.nesting.function(edge.caller).calls[edge.index].func
        method = edge.callee.function.rpartition(".")[2]
        if type(func) is not str:
            return ""
        base, _, called = func.rpartition(".")
        found = base if called == method else func if method in _CALLED else ""
        return found if found and "." not in found else ""

    def _found(self, name: str, scope: Scope, owner: Ref) -> Iterator[Making]:
        # In their order: the first that an option keeps from being made is told.
        family = dict.fromkeys([owner, *self._resolver.hierarchy.below(owner)])
        given = self._resolver.written.definitions(name, scope)
        makers = {where for value, where in given if self._makes(value, where, family)}
        if not makers or not all(self._is_told(value, where, name) for value, where in given):
            return
        for cls in family:
            yield from (item for item in self._makings.of(cls) if item.scope in makers)

    def _makes(self, value: Value, scope: Scope, family: Collection[Ref]) -> bool:
        return any(ref in family for ref in self._classes(value, scope))

    def _is_told(self, value: Value, scope: Scope, name: str) -> bool:
        """Whether a value is made by a class of the project, or of what the name held before: `model.cuda()`."""
        return bool(self._classes(value, scope)) or _mentions(value, name)

    def _classes(self, value: Value, scope: Scope) -> list[Ref]:
        if not (type(value) is tuple and value[0] == "call" and type(value[1]) is str):
            return []
        refs = self._resolver.refs(value[1], scope)
        made = [Ref(CLASS, ref.path, ref.name) for ref in refs if ref.kind in (CLASS, INSTANCE) and ref.path]
        return made if len(made) == len(refs) else []


def _mentions(value: Value, name: str) -> bool:
    if type(value) is tuple:
        return any(_mentions(part, name) for part in value)
    return type(value) is str and (value == name or value.startswith(f"{name}."))
