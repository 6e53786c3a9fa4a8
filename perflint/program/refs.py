"""What a value may be: `Ref`; where it is written: `Scope`; and the small functions on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from perflint.facts.summary import MODULE, Summary, Value, record
from perflint.pytorch import loaders, wrappers

FUNCTION = "function"
CLASS = "class"
INSTANCE = "instance"
MODULE_REF = "module"
EXTERNAL = "external"
EXTERNAL_INSTANCE = "external instance"
BATCH = "batch"

#: Calls that hand back one of their arguments (its index), wrapped or not.
IDENTITY = {
    **wrappers.IDENTITIES,
    **{name: wrapper.argument for name, wrapper in loaders.WRAPPERS.items() if wrapper.shape == "same"},
    "functools.partial": 0,
    "functools.wraps": 0,
}
#: A value that may be more things than these is nothing to build on.
MOST = 6


class Ref(NamedTuple):
    """One thing a value may be. `path` is the defining file ("" for libraries), `name` the qualname in it, or the
    dotted name of the library thing (for instances: of its class or of the function that made it)."""

    kind: str
    path: str
    name: str


class Scope(NamedTuple):
    """Where a value is written: file and qualname of the function (`MODULE` for module level)."""

    path: str
    function: str


Refs = tuple[Ref, ...]
ParamRefs = Callable[[Scope, str], Refs]


def given(call: Value) -> tuple[Value, ...]:
    """The positional arguments of a call, or what it is told to iterate: `tqdm(iterable=loader)`."""
    return call[2] or tuple(item for name, item in call[3] if name == "iterable")


def argument(call: Value, name: str, place: int) -> Value:
    """What a call hands the parameter `name`, written with its stars, whose arguments would stand at `place`."""
    if name.startswith("*"):
        return None
    for key, value in call[3]:
        if key == name.lstrip("="):
            return value
    return call[2][place] if not name.startswith("=") and place < len(call[2]) else None


def instance_of(ref: Ref) -> Ref:
    """What calling a class gives; anything else stays as it is."""
    if ref.kind == CLASS:
        return record(Ref, (INSTANCE, ref.path, ref.name))
    if ref.kind == EXTERNAL:
        return record(Ref, (EXTERNAL_INSTANCE, "", ref.name))
    return ref


def few(refs: Iterator[Ref] | Refs) -> Refs:
    """At most a handful of distinct refs: a value that may be anything is nothing to build on."""
    if type(refs) is tuple and len(refs) < 2:
        return refs
    found: dict[Ref, None] = {}
    for ref in refs:
        found[ref] = None
        if len(found) > MOST:
            break
    return tuple(found)


def defined(summary: Summary, path: str, qualname: str) -> Refs:
    """The class or function of that qualname in a file."""
    if qualname in summary.classes:
        return (record(Ref, (CLASS, path, qualname)),)
    if qualname in summary.functions and qualname != MODULE:
        return (record(Ref, (FUNCTION, path, qualname)),)
    return ()
