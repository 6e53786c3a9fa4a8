"""What decorators of the project put in the place of a function."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.analysis.names.refs import FUNCTION, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import FunctionFacts


def put_in_place(scope: Scope, facts: FunctionFacts, resolver: Resolver) -> Iterator[Scope]:
    """The functions that stand in for a decorated one: what its decorators define inside and give back."""
    functions = resolver.summaries[scope.path].functions
    outside = Scope(scope.path, facts.owner) if facts.owner in functions else resolver.nesting.module(scope.path)
    for decorator in facts.decorators:
        func = decorator[1] if isinstance(decorator, tuple) and decorator[0] == "call" else decorator
        for ref in resolver.refs(func, outside):
            if ref.kind == FUNCTION and ref.path:
                yield from _given_back(Scope(ref.path, ref.name), 2, resolver)


def _given_back(maker: Scope, depth: int, resolver: Resolver) -> Iterator[Scope]:
    functions = resolver.summaries[maker.path].functions
    for value in functions[maker.function].returns:
        inner = f"{maker.function}.<locals>.{value}"
        if isinstance(value, str) and inner in functions:
            yield Scope(maker.path, inner)
            if depth > 1:
                yield from _given_back(Scope(maker.path, inner), depth - 1, resolver)
