"""Where functions surely raise: they read an attribute of their own object that nothing in the program gives it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from perflint.analysis.feasibility.presence import Presence
from perflint.analysis.names.refs import Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir import guards
from perflint.ir.summary import FunctionFacts, Value

#: A line, and a column as ast counts.
Place: TypeAlias = "tuple[int, int]"


class Raising:
    """The functions of one program."""

    def __init__(self, resolver: Resolver, presence: Presence) -> None:
        self._resolver = resolver
        self._presence = presence
        self._first: dict[Scope, Place | None] = {}

    def before(self, scope: Scope, place: Place) -> bool:
        """Whether a function raises whenever it runs, before it comes to a place."""
        if scope not in self._first:
            self._first[scope] = self._first_of(scope)
        first = self._first[scope]
        return first is not None and first < place

    def _first_of(self, scope: Scope) -> Place | None:
        facts = self._resolver.summaries[scope.path].functions[scope.function]
        if not facts.in_class or any(item.detail == guards.RARE for item in facts.contexts):
            return None  # what it raises may be handled
        return min((place for name, place in _own_reads(facts) if self._presence.is_missing(name, scope)), default=None)


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
