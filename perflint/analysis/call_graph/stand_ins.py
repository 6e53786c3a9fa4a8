"""What runs in the place of a function: methods that are replaced, and implementations of a dispatch by type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.names.refs import CLASS, FUNCTION, INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.finding import Confidence
from perflint.ir.summary import MODULE, FunctionFacts, Value

_DISPATCHES = ("singledispatch", "singledispatchmethod")


class Graph(Protocol):
    """What is asked of the call graph that stand-ins are added to."""

    incoming: dict[Scope, list[Edge]]

    def add(self, edge: Edge) -> None: ...


def connect_stand_ins(resolver: Resolver, graph: Graph) -> frozenset[Scope]:
    """Add an edge to each function that runs in the place of another one, wherever that is called. Returned are those
    that are put in the place of the `forward` of something that is not of the project.
    """
    finder = _Finder(resolver)
    forwards = set()
    for original, function in (*finder.replaced(), *finder.dispatched()):
        if original is None:
            forwards.add(function)
            continue
        for edge in list(graph.incoming.get(original, ())):
            if edge.caller != function:
                graph.add(edge._replace(callee=function, confidence=min(edge.confidence, Confidence.MEDIUM)))
    return frozenset(forwards)


class _Finder:
    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._nesting = resolver.nesting

    def replaced(self) -> Iterator[tuple[Scope | None, Scope]]:
        """`Engine.step = ours`, `net.forward = types.MethodType(patched, net)`."""
        for scope, names in self._nesting.dotted.items():
            if scope.function != MODULE and scope.function not in self._resolver.summaries[scope.path].functions:
                continue
            for dotted in names:
                base, _, name = dotted.rpartition(".")
                if name != "forward" and name not in self._nesting.by_name:
                    continue
                functions = [
                    item for value in self._nesting.function(scope).binds[dotted] for item in self._put(value, scope)
                ]
                if functions:
                    for original in self._originals(base, name, scope):
                        yield from ((original, item) for item in functions if item != original)

    def _originals(self, base: str, name: str, scope: Scope) -> list[Scope | None]:
        refs = [ref for ref in self._resolver.refs(base, scope) if ref.kind in (CLASS, INSTANCE)]
        methods = [method for ref in refs if (method := self._resolver.method(ref, name)) is not None]
        if methods:
            return [Scope(method.path, method.name) for method in methods]
        return [None] if name == "forward" else []

    def _put(self, value: Value, scope: Scope) -> list[Scope]:
        """The functions that a value is, bound to an object or not."""
        if isinstance(value, tuple) and value[0] == "call" and isinstance(value[1], str):
            owner, _, last = value[1].rpartition(".")
            if last == "MethodType" and value[2]:
                value = value[2][0]
            elif last == "__get__":
                value = owner
        return [Scope(ref.path, ref.name) for ref in self._resolver.refs(value, scope) if ref.kind == FUNCTION]

    def dispatched(self) -> Iterator[tuple[Scope | None, Scope]]:
        """`@move.register` and `move.register(tuple, move_tuple)` for a `move` that `singledispatch` decorates."""
        originals = {scope for scope, facts in self._nesting.functions if facts.decorators and _dispatches(facts)}
        if not originals:
            return
        for scope, facts in self._nesting.functions:
            for decorator in facts.decorators:
                called = decorator[1] if isinstance(decorator, tuple) and decorator[0] == "call" else decorator
                if isinstance(called, str) and called.endswith(".register"):
                    where = Scope(scope.path, facts.owner or MODULE)
                    yield from ((item, scope) for item in self._dispatch(called[:-9], where, facts, originals))
            for call in facts.calls:
                if isinstance(call.func, str) and call.func.endswith(".register") and len(call.args) > 1:
                    for original in self._dispatch(call.func[:-9], scope, facts, originals):
                        yield from ((original, item) for item in self._put(call.args[1], scope))

    def _dispatch(self, name: str, scope: Scope, facts: FunctionFacts, originals: set[Scope]) -> list[Scope]:
        in_class = Scope(scope.path, f"{facts.in_class}.{name}")
        if in_class in originals:
            return [in_class]
        refs = self._resolver.refs(name, scope)
        return [item for ref in refs if ref.kind == FUNCTION and (item := Scope(ref.path, ref.name)) in originals]


def _dispatches(facts: FunctionFacts) -> bool:
    return any(str(item).rpartition(".")[2] in _DISPATCHES for item in facts.decorators)


def connect_iterators(resolver: Resolver, graph: Graph) -> None:
    """A loop over an object of the project runs its `__next__`, or its `__getitem__`, on each iteration."""
    if not {"__next__", "__getitem__"} & resolver.nesting.by_name.keys():
        return
    for scope, facts in resolver.nesting.functions:
        if not facts.loops:
            continue
        for context, item in enumerate(facts.contexts):
            if item.kind == "loop":
                loop = facts.loops[int(item.detail)]
                if loop.kind != "while":
                    for callee in _advanced(resolver, loop.iterable, scope):
                        graph.add(Edge(scope, callee, context, loop.line, Confidence.HIGH, -1))
        for call in facts.calls:
            if call.func == "next" and call.args:
                for callee in _advanced(resolver, call.args[0], scope):
                    graph.add(Edge(scope, callee, call.context, call.line, Confidence.HIGH, -1))


_WRAPPERS = frozenset({"enumerate", "tqdm", "iter", "trange", "track"})


def _advanced(resolver: Resolver, value: Value, scope: Scope) -> list[Scope]:
    """What taking one element runs, where that is no generator."""
    for _ in range(4):
        if not (isinstance(value, tuple) and value[0] == "call" and isinstance(value[1], str) and value[2]):
            break
        if value[1].rpartition(".")[2] not in _WRAPPERS:
            break
        value = value[2][0]
    if not isinstance(value, str) and not (isinstance(value, tuple) and value[0] == "call"):
        return []
    if isinstance(value, str):
        definitions = resolver.written.definitions(value, scope)
        if len(definitions) == 1:
            inner, where = definitions[0]
            if isinstance(inner, tuple) and inner[0] == "call" and inner[1] == "iter" and inner[2]:
                value, scope = inner[2][0], where
    found: list[Scope] = []
    for ref in resolver.refs(value, scope):
        if ref.kind == INSTANCE:
            found += _of_instance(resolver, ref)
    return list(dict.fromkeys(found))


def _of_instance(resolver: Resolver, ref: Ref) -> Iterator[Scope]:
    begins = resolver.method(ref, "__iter__")
    if begins is None:
        method = resolver.method(ref, "__next__") or resolver.method(ref, "__getitem__")
        if method is not None:
            yield Scope(method.path, method.name)
        return
    if resolver.summaries[begins.path].functions[begins.name].is_generator:
        return
    for given in (ref, *resolver.results.returned(begins)):
        method = resolver.method(given, "__next__") if given.kind == INSTANCE else None
        if method is not None:
            yield Scope(method.path, method.name)
            return
