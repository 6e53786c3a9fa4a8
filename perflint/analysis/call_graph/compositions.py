"""What calling a composition of transforms runs: `Compose([Crop(64), to_tensor])`, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from perflint.analysis.call_graph.overriding import methods_of
from perflint.analysis.names.refs import EXTERNAL_INSTANCE, FUNCTION, INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.callees import last_name
from perflint.ir.summary import Value

#: Classes of libraries that run what they are made with when they are called, by their last names: what is wrapped is
#: the first argument.
_COMPOSING = frozenset("Compose RandomApply RandomChoice RandomOrder Lambda Sequential OneOf SomeOf".split())
#: Through so many names, attributes and parameters a composition is followed to where it is made.
_DEEPEST = 6


def transforms_of(func: Value, scope: Scope, resolver: Resolver) -> list[Scope]:
    """The functions of the project that a call of a composition runs: with what the one before gives."""
    if not isinstance(func, str):
        return []
    if not any(_composes(ref.name) for ref in resolver.refs(func, scope) if ref.kind == EXTERNAL_INSTANCE):
        return []
    found: dict[Scope, None] = {}
    for value, where in _made(func, scope, resolver, _DEEPEST):
        found.update(dict.fromkeys(_held(value, where, resolver, _DEEPEST)))
    return list(found)


def composed(value: Value, scope: Scope, resolver: Resolver) -> list[Scope]:
    """The functions of the project that run when what a value is gets called: itself, or what it is composed of."""
    found = dict.fromkeys(_run(value, scope, resolver))
    for made, where in _calls(value, scope, resolver, _DEEPEST):
        found.update(dict.fromkeys(_held(made, where, resolver, _DEEPEST)))
    return list(found)


def _composes(name: str) -> bool:
    owner, _, last = name.rpartition(".")
    return last in _COMPOSING and not owner.startswith("torch.nn")


def _held(made: Value, scope: Scope, resolver: Resolver, depth: int) -> Iterator[Scope]:
    """What runs what a composition is made of, compositions inside of it too."""
    if depth <= 0 or not made[2] or last_name(made[1]) not in _COMPOSING:
        return
    whole = made[2][0]
    for item in whole[1] if isinstance(whole, tuple) and whole[0] == "seq" else ():
        for value, where in _calls(item, scope, resolver, depth):
            yield from _held(value, where, resolver, depth - 1)
    yield from _run(whole, scope, resolver, resolver.elements(whole, scope))


def _run(value: Value, scope: Scope, resolver: Resolver, elements: Iterable[Ref] = ()) -> Iterator[Scope]:
    for ref in (*elements, *resolver.refs(value, scope)):
        if ref.kind == INSTANCE:
            yield from methods_of(resolver, ref, ("forward", "__call__"))
        elif ref.kind == FUNCTION:
            yield Scope(ref.path, ref.name)


def _made(name: str, scope: Scope, resolver: Resolver, depth: int) -> Iterator[tuple[Value, Scope]]:
    """The calls that make what goes by a name, through other names and what callers pass."""
    definitions = resolver.written.definitions(name, scope)
    for definition, where in definitions:
        yield from _calls(definition, where, resolver, depth)
    if not definitions and "." not in name and resolver.param_values is not None:
        for given, caller in resolver.param_values(scope, name):
            yield from _calls(given, caller, resolver, depth)


def _calls(value: Value, scope: Scope, resolver: Resolver, depth: int) -> Iterator[tuple[Value, Scope]]:
    if isinstance(value, str):
        if depth > 0:
            yield from _made(value, scope, resolver, depth - 1)
    elif isinstance(value, tuple):
        if value[0] == "either":
            for part in value[1]:
                yield from _calls(part, scope, resolver, depth)
        elif value[0] == "call":
            yield value, scope
            if depth > 0 and last_name(value[1]) not in _COMPOSING:
                yield from _returned(value, scope, resolver, depth - 1)
        elif value[0] == "item" and isinstance(value[1], tuple) and value[1][0] == "call" and depth > 0:
            yield from _returned(value[1], scope, resolver, depth - 1, value[2])


def _returned(
    call: Value, scope: Scope, resolver: Resolver, depth: int, place: object = None
) -> Iterator[tuple[Value, Scope]]:
    """The calls that make what a function of the project gives back, or what stands at a place of that."""
    for ref in resolver.refs(call[1], scope):
        if ref.kind == FUNCTION:
            facts = resolver.summaries[ref.path].functions[ref.name]
            for value in () if facts.is_generator else facts.returns:
                parts = value[1] if isinstance(value, tuple) and value[0] == "seq" else ()
                if place is None:
                    yield from _calls(value, Scope(ref.path, ref.name), resolver, depth)
                elif isinstance(place, int) and -len(parts) <= place < len(parts):
                    yield from _calls(parts[place], Scope(ref.path, ref.name), resolver, depth)
