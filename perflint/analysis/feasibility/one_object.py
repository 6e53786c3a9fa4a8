"""Whether the calls of a way that run methods of one object can all be of the same one: which method `self.build()`
runs is told by the class of the object that the way makes, or calls a method of.
"""

from __future__ import annotations

from typing import TypeAlias

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.names.refs import CLASS, FUNCTION, INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import Value

_Calls: TypeAlias = "tuple[Edge, ...]"
#: What calling an object runs.
_CALLED = ("forward", "__call__")
#: Past so many classes below one any of them may be meant.
_MOST = 200


class OneObject:
    """The objects whose methods the calls of one program run."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._known: dict[_Calls, bool] = {}

    def may_run(self, calls: _Calls) -> bool:
        """Whether each object of a way may be of one class. The call of the innermost function comes first."""
        begin = 0
        for place, edge in enumerate(calls):
            if not self._is_of_same(edge):
                if place > begin and not self._has_class(calls[begin : place + 1]):
                    return False
                begin = place + 1
        return len(calls) - begin < 2 or self._has_class(calls[begin:])

    def may_hold(self, func: str, edge: Edge, kept: list[tuple[Value, Scope]]) -> bool:
        """Whether `self.sampler(x)` may run a method, where its object is made with something for that attribute."""
        name = edge.callee.function.rpartition(".")[2]
        if not kept or edge.callback or name not in _CALLED or func.endswith(f".{name}"):
            return True
        held = [self._resolver.refs(*item) for item in kept]
        if any(not refs or any(ref.kind != INSTANCE or not ref.path for ref in refs) for refs in held):
            return True
        return any(self._runs(Ref(CLASS, ref.path, ref.name), name, edge.callee) for refs in held for ref in refs)

    def _has_class(self, calls: _Calls) -> bool:
        if calls not in self._known:
            self._known[calls] = self._is_one(calls)
        return self._known[calls]

    def _is_one(self, calls: _Calls) -> bool:
        """Whether some class has all these methods, of which but the last is called by the object itself."""
        candidates = self._classes_for(calls[-1])
        if len(candidates) > _MOST:
            return True
        for edge in calls[:-1] if candidates else ():
            caller = self._resolver.nesting.enclosing_class(edge.caller)
            name = self._own_method(edge)
            candidates = [
                cls
                for cls in candidates
                if caller in self._resolver.mro(cls) and (not name or self._runs(cls, name, edge.callee))
            ]
            if not candidates:
                return False
        return True

    def _classes_for(self, edge: Edge) -> list[Ref]:
        """The classes that the object may be of for which a call runs its callee."""
        is_of_same = self._is_of_same(edge)
        made = [] if is_of_same or edge.callback else self._made(edge)
        if not made:
            cls = self._resolver.nesting.enclosing_class(edge.caller if is_of_same else edge.callee)
            made = [cls, *self._resolver.hierarchy.below(cls)] if cls.name else []
        name = self._own_method(edge) if is_of_same else edge.callee.function.rpartition(".")[2]
        return [cls for cls in made if not name or self._runs(cls, name, edge.callee)]

    def _made(self, edge: Edge) -> list[Ref]:
        """The classes of what a call makes, or is of, where the calls that make it are all plain to see."""
        func = self._func(edge)
        name = edge.callee.function.rpartition(".")[2]
        refs = self._resolver.refs(func, edge.caller)
        if any(ref.kind == CLASS for ref in refs):
            return [ref for ref in refs if ref.kind == CLASS and ref.path]
        base = func.rpartition(".")[0] if type(func) is str and func.endswith(f".{name}") else func
        if type(base) is not str:
            return []
        found: list[Ref] = []
        for value, scope in self._resolver.written.definitions(base, edge.caller):
            made = self._resolver.refs(value[1], scope) if type(value) is tuple and value[0] == "call" else ()
            if not made or any(ref.kind != CLASS or not ref.path for ref in made):
                return []
            found += made
        return found

    def _is_of_same(self, edge: Edge) -> bool:
        """Whether a call runs a method of the object whose method makes it: `self.build()`, `super().build()`."""
        func = self._func(edge)
        if edge.callback or not self._resolver.nesting.enclosing_class(edge.caller).name:
            return False
        if _is_of_super(func):
            return True
        return self._own_method(edge) != ""

    def _own_method(self, edge: Edge) -> str:
        """The name of the method that `self.name()` runs, where it is one; of `super().name()` the class is told."""
        func = self._func(edge)
        name = edge.callee.function.rpartition(".")[2]
        if func == f"self.{name}" or (func == "self" and name in _CALLED):
            caller = self._resolver.nesting.enclosing_class(edge.caller)
            is_method = bool(self._resolver.nesting.enclosing_class(edge.callee).name)
            return name if is_method and not self._keeps(caller, name) else ""
        return ""

    def _keeps(self, cls: Ref, name: str) -> bool:
        """Whether an object keeps something under a name, be it the method of another one: `self.run = loss.run`."""
        facts = (self._resolver.hierarchy.facts(owner) for owner in self._resolver.mro(cls))
        return any(name in one.attributes for one in facts if one is not None)

    def _runs(self, cls: Ref, name: str, callee: Scope) -> bool:
        return self._resolver.method(cls, name) == Ref(FUNCTION, callee.path, callee.function)

    def _func(self, edge: Edge) -> Value:
        if edge.index < 0:
            return None
        return self._resolver.summaries[edge.caller.path].functions[edge.caller.function].calls[edge.index].func


def _is_of_super(func: Value) -> bool:
    return type(func) is tuple and func[0] == "attr" and type(func[1]) is tuple and func[1][:2] == ("call", "super")
