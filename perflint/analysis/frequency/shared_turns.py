"""Whether a period is the number of processes among which the turns of a loop are shared: each has its turns all the
time, and nothing is rarer than the loop.
"""

from __future__ import annotations

from collections.abc import Iterator

from perflint.analysis.names.refs import EXTERNAL, FUNCTION, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.analysis.naming.loops import PROCESSES
from perflint.ir.callees import last_name
from perflint.ir.summary import Value
from perflint.torch_model.distributed import COUNTS_PROCESSES

_DEPTH = 5
#: What leaves a number as it is, or is made of it.
_CONVERSIONS = frozenset({"int", "max", "min"})


def counts_processes(value: Value, scope: Scope, resolver: Resolver, depth: int = _DEPTH) -> bool:
    """Whether a number is that of processes, by what gives it; by its name only where nothing is seen to give it.

    `rank, world_size = dist_info()` counts them if what the function hands back there does, in any of its branches.
    """
    if depth == 0 or value is None:
        return False
    if isinstance(value, str):
        given = list(_given(value, scope, resolver))
        if not given:
            return PROCESSES.match(value.rpartition(".")[2]) is not None
        return any(counts_processes(inner, where, resolver, depth - 1) for inner, where in given)
    form = value[0]
    if form == "either":
        return any(counts_processes(part, scope, resolver, depth - 1) for part in value[1])
    if form == "call":
        return _is_count(value, scope, resolver, depth)
    if form != "item":
        return False
    parts = list(_parts(value[1], value[2], scope, resolver))
    if not parts and isinstance(value[2], str):
        return PROCESSES.match(value[2]) is not None
    return any(counts_processes(inner, where, resolver, depth - 1) for inner, where in parts)


def _given(name: str, scope: Scope, resolver: Resolver) -> Iterator[tuple[Value, Scope]]:
    yield from resolver.written.definitions(name, scope)
    if resolver.param_values is not None and "." not in name:
        yield from resolver.param_values(scope, name)


def _is_count(call: Value, scope: Scope, resolver: Resolver, depth: int) -> bool:
    refs = resolver.refs(call[1], scope)
    if any(ref.kind == EXTERNAL and ref.name in COUNTS_PROCESSES for ref in refs):
        return True
    inside = [(item, where) for ref in refs if ref.kind == FUNCTION for item, where in _returned(ref, resolver)]
    if inside:
        return any(counts_processes(item, where, resolver, depth - 1) for item, where in inside)
    name = last_name(call[1])
    if name in _CONVERSIONS:
        return any(counts_processes(item, scope, resolver, depth - 1) for item in call[2])
    texts = [item[2] for item in call[2][:1] if isinstance(item, tuple) and item[:2] == ("const", "str")]
    return any(isinstance(text, str) and PROCESSES.match(text) is not None for text in texts)


def _parts(base: Value, index: object, scope: Scope, resolver: Resolver) -> Iterator[tuple[Value, Scope]]:
    """What stands at an index of what a function hands back."""
    if not (isinstance(base, tuple) and base[0] == "call" and type(index) is int):
        return
    for ref in resolver.refs(base[1], scope):
        for value, where in _returned(ref, resolver) if ref.kind == FUNCTION else ():
            if isinstance(value, tuple) and value[0] == "seq" and -len(value[1]) <= index < len(value[1]):
                yield value[1][index], where


def _returned(function: tuple[str, str, str], resolver: Resolver) -> Iterator[tuple[Value, Scope]]:
    _, path, name = function
    for value in resolver.summaries[path].functions[name].returns:
        yield value, Scope(path, name)
