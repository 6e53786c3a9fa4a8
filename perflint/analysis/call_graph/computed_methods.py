"""Methods of an object's own that it looks up by a text it computes: `getattr(self, f"{kind}_reduction")(losses)`."""

from __future__ import annotations

from collections.abc import Iterator
from string import Formatter
from typing import Protocol

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.names.refs import CLASS, INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.finding import Confidence
from perflint.ir.summary import CallFacts, Value

#: Past this many methods, a text says nothing about which of them runs.
_MOST = 40
#: What stands in a text for what is not known of it.
_OPEN = "{}"


class Graph(Protocol):
    """What is asked of the call graph that the calls are added to."""

    def add(self, edge: Edge) -> None: ...


def connect_computed_methods(resolver: Resolver, graph: Graph) -> None:
    """Add an edge from each such call to the methods that the text fits, of the class itself and of those around it:
    also where another method looks the method up, and gives it to the one that calls it.
    """
    for scope, facts in resolver.nesting.functions:
        cls = resolver.nesting.enclosing_class(scope) if facts.calls else None
        if cls is None or not cls.name:
            continue
        for index, call in enumerate(facts.calls):
            func = call.func
            for value in facts.binds.get(func, ()) if isinstance(func, str) else (func,):
                for text in _texts(value, cls, resolver):
                    for callee in _methods(text, cls, resolver):
                        graph.add(
                            Edge(scope, callee, call.context, call.line, Confidence.MEDIUM, index, stands_in=True)
                        )


def _edge(scope: Scope, callee: Scope, index: int, call: CallFacts) -> Edge:
    return Edge(scope, callee, call.context, call.line, Confidence.MEDIUM, index, stands_in=True)


def _texts(value: Value, cls: Ref, resolver: Resolver) -> Iterator[str]:
    """The texts by which a value is looked up among the object's methods, here or in the method that gives it."""
    text = _text(value)
    if text:
        yield text
    elif isinstance(value, tuple) and value[0] == "call" and isinstance(value[1], str):
        owner, _, name = value[1].rpartition(".")
        method = resolver.method(cls._replace(kind=INSTANCE), name) if owner == "self" else None
        if method is not None:
            yield from filter(None, map(_text, resolver.facts(Scope(method.path, method.name)).returns))


def _text(value: Value) -> str:
    """`{}_reduction` of `getattr(self, "{}_reduction".format(kind))`; empty where nobody sees any of the name."""
    if not isinstance(value, tuple) or value[:2] != ("call", "getattr") or len(value[2]) < 2 or value[2][0] != "self":
        return ""
    name = value[2][1]
    if not isinstance(name, tuple) or name[0] != "call" or not isinstance(name[1], tuple) or name[1][0] != "attr":
        return ""
    written, method = name[1][1:]
    is_text = method == "format" and isinstance(written, tuple) and written[:2] == ("const", "str")
    return written[2] if is_text and written[2].replace(_OPEN, "").strip("_") else ""


def _fits(name: str, parts: list[str]) -> bool:
    """Whether a name begins and ends as a text does, and holds what stands between what is not known of it."""
    return len(name) > sum(map(len, parts)) and name.startswith(parts[0]) and name.endswith(parts[-1])


def _methods(text: str, cls: Ref, resolver: Resolver) -> list[Scope]:
    try:
        parts = [literal for literal, _, _, _ in Formatter().parse(text)]
    except ValueError:
        return []  # a brace that nothing closes
    if text.endswith("}"):
        parts.append("")
    around = {cls, *resolver.mro(cls), *resolver.below(cls)}
    found = [
        scope
        for name, named in resolver.nesting.by_name.items()
        if _fits(name, parts)
        for scope, facts in named
        if facts.in_class and Ref(CLASS, scope.path, facts.in_class) in around
    ]
    return found if len(found) <= _MOST else []
