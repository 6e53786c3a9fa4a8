"""Loops over lists in which a program has gathered batches: what is kept in memory all at once is a handful.

Where a guard makes such a loop rarer than the steps around it, it stays so: samples heard every thousand steps.
"""

from __future__ import annotations

from collections.abc import Iterator

from perflint.analysis.frequency.sources import last_of_call
from perflint.analysis.names.refs import Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import LoopFacts, Value

#: What goes through all that it is given.
_WRAPPERS = frozenset("enumerate zip zip_longest tqdm track list tuple iter reversed".split())
_LISTS = frozenset({"list", "deque"})


def is_gathered(loop: LoopFacts, scope: Scope, resolver: Resolver) -> bool:
    """Whether a loop goes over nothing but lists that the program makes and fills itself."""
    names = list(_gone_through(loop.iterable))
    return bool(names) and all(name is not None and _is_list(name, scope, resolver) for name in names)


def _is_list(name: str, scope: Scope, resolver: Resolver) -> bool:
    made = resolver.written.definitions(name, scope)
    return bool(made) and all(_makes_list(value) for value, _ in made)


def _makes_list(value: Value) -> bool:
    """`[]`, `list()`, `[next(batches) for _ in range(4)]`"""
    return isinstance(value, tuple) and (value[0] in ("seq", "each") or last_of_call(value) in _LISTS)


def _gone_through(value: Value) -> Iterator[str | None]:
    """The names of what a loop goes over, side by side; None for what has no name."""
    if isinstance(value, tuple) and value[0] == "call" and last_of_call(value) in _WRAPPERS and value[2]:
        for item in value[2] if last_of_call(value).startswith("zip") else value[2][:1]:
            yield from _gone_through(item)
    else:
        yield value if isinstance(value, str) else None
