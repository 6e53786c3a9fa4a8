"""What decorators of the project put in the place of a function."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.analysis.names.refs import FUNCTION, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import SPREAD, FunctionFacts, Value


def put_in_place(scope: Scope, facts: FunctionFacts, resolver: Resolver) -> Iterator[Scope]:
    """The functions that stand in for a decorated one: what its decorators define inside and give back."""
    functions = resolver.summaries[scope.path].functions
    outside = Scope(scope.path, facts.owner) if facts.owner in functions else resolver.nesting.module(scope.path)
    for decorator in facts.decorators:
        func = decorator[1] if isinstance(decorator, tuple) and decorator[0] == "call" else decorator
        for ref in resolver.refs(func, outside):
            if ref.kind == FUNCTION and ref.path:
                yield from _given_back(Scope(ref.path, ref.name), 2, resolver)


def hands_on(decorator: Value, scope: Scope, resolver: Resolver) -> bool:
    """Whether a decorator of the project calls the function that it is put on with what that is called with, and no
    otherwise: `def inner(*args, **kwargs): return function(*args, **kwargs)`.
    """
    is_made = isinstance(decorator, tuple) and decorator[0] == "call"
    refs = resolver.refs(decorator[1] if is_made else decorator, scope)
    makers = [Scope(ref.path, ref.name) for ref in refs if ref.kind == FUNCTION and ref.path]
    if not makers or len(makers) < len(refs):
        return False
    if is_made:
        makers = [inner for maker in makers for inner in _given_back(maker, 1, resolver)]
    return bool(makers) and all(_only_hands_on(maker, resolver) for maker in makers)


def _only_hands_on(maker: Scope, resolver: Resolver) -> bool:
    functions = resolver.summaries[maker.path].functions
    facts = functions[maker.function]
    inner = [functions[item.function] for item in _given_back(maker, 1, resolver)]
    if len(facts.params) != 1 or len(inner) != 1 or len(facts.returns) != 1:
        return False
    name, around = facts.params[0].name, inner[0]
    first = [param.name for param in around.params if not param.name.startswith(("*", "="))]
    rest = [param.name[1:] for param in around.params if param.name.startswith("*") and param.name[1:2] != "*"]
    options = [param.name[2:] for param in around.params if param.name.startswith("**")]
    if len(rest) != 1 or len(options) != 1 or {*first, *rest, *options} & {*around.binds, *around.computed}:
        return False
    calls = [(call.args, call.keywords) for call in around.calls if call.func == name]
    return bool(calls) and all(given == ((*first, rest[0]), (("", options[0]), (SPREAD, None))) for given in calls)


def _given_back(maker: Scope, depth: int, resolver: Resolver) -> Iterator[Scope]:
    functions = resolver.summaries[maker.path].functions
    for value in functions[maker.function].returns:
        inner = f"{maker.function}.<locals>.{value}"
        if isinstance(value, str) and inner in functions:
            yield Scope(maker.path, inner)
            if depth > 1:
                yield from _given_back(Scope(maker.path, inner), depth - 1, resolver)
