"""What `with` runs of the project: `__enter__` and `__exit__` of the objects that are entered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from perflint.analysis.names.refs import INSTANCE, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.callees import last_name
from perflint.ir.own_effects import ENTERS
from perflint.ir.summary import FunctionFacts, Value

_METHODS = ("__enter__", "__exit__", "__aenter__", "__aexit__")


class Entered(NamedTuple):
    """A function enters an object at a line, in one of its contexts, and so runs a method of it."""

    caller: Scope
    callee: Scope
    context: int
    line: int


def entered(resolver: Resolver) -> Iterator[Entered]:
    """All such runs in a program."""
    if not any(facts.in_class for name in _METHODS for _, facts in resolver.nesting.by_name.get(name, ())):
        return
    for scope, facts in resolver.nesting.functions:
        for fact in facts.does if facts.may_enter else ():
            if fact.kind == ENTERS:
                value = fact.name or _call_at(fact.line, fact.column, fact.detail, facts)
                context = facts.context_at(fact.line, fact.column)
                for callee in _methods(value, scope, resolver):
                    yield Entered(scope, callee, context, fact.line)


def _call_at(line: int, column: int, name: str, facts: FunctionFacts) -> Value:
    for call in facts.calls:
        if (call.line, call.column) == (line, column) and last_name(call.func) == name:
            return ("call", call.func, call.args, call.keywords)
    return None


def _methods(value: Value, scope: Scope, resolver: Resolver) -> Iterator[Scope]:
    if value is None:
        return
    for ref in resolver.refs(value, scope):
        if ref.kind == INSTANCE and ref.path:
            for name in _METHODS:
                method = resolver.method(ref, name)
                if method is not None:
                    yield Scope(method.path, method.name)
