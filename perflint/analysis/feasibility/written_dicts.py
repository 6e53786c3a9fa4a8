"""Entries of dicts that a program writes out and leaves as they are: `options = {"fast": False}`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from perflint.analysis.feasibility.parameters import Passing
from perflint.analysis.names.refs import Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.callees import last_name
from perflint.ir.summary import ENTRIES, MODULE, Value
from perflint.torch_model.structures import OF_KEYWORDS

#: Methods that change a dict, or give others a hold of what it has.
_CHANGING = frozenset("update setdefault pop popitem clear merge merge_from_file __setitem__ __setattr__".split())
_FURTHEST = 3


class Entries(NamedTuple):
    """What goes by a key, each with where it is written, whether some of the dicts lack it, and whether all of them are
    made in the function that asks.
    """

    values: list[tuple[Value, Scope]]
    is_lacking: bool
    is_local: bool


class WrittenDicts:
    """The dicts of one program."""

    def __init__(self, resolver: Resolver, passing: Passing) -> None:
        self._resolver = resolver
        self._passing = passing

    def entries(self, base: str, key: str, scope: Scope) -> Entries | None:
        """What an entry may be; None where anything else may be there."""
        if base.rpartition(".")[2] in self._changed:
            return None
        values: list[tuple[Value, Scope]] = []
        is_lacking, is_local = False, True
        for value, where in self._held(base, scope, _FURTHEST) or ():
            given = _given(value)
            if given is None or "" in given:
                return None
            is_lacking = is_lacking or key not in given
            is_local = is_local and where == scope and scope.function != MODULE
            values += [(given[key], where)] if key in given else []
        return Entries(values, is_lacking, is_local) if values or is_lacking else None

    def _held(self, base: str, scope: Scope, deepest: int) -> list[tuple[Value, Scope]] | None:
        """What a name is given, what calls pass for it included; None where that is not all."""
        facts = self._resolver.nesting.function(scope)
        if "." not in base and base in self._resolver.nesting.positions(facts):
            is_told = deepest > 0 and base not in facts.binds and base not in facts.computed
            return self._passed(base, scope, deepest) if is_told else None
        found: list[tuple[Value, Scope]] = []
        for value, where in self._resolver.written.definitions(base, scope):
            if type(value) is not str:
                found.append((value, where))
                continue
            further = self._held(value, where, deepest - 1) if deepest > 0 and (value, where) != (base, scope) else None
            if further is None or value.rpartition(".")[2] in self._changed:
                return None
            found += further
        return found

    def _passed(self, name: str, scope: Scope, deepest: int) -> list[tuple[Value, Scope]] | None:
        callers = self._passing.callers(scope)
        if not callers or self._passing.is_called_unseen(scope):
            return None
        found: list[tuple[Value, Scope]] = []
        for edge in callers:
            for value in self._passing.passed(edge, name).value or (None,):
                further = [(value, edge.caller)]
                if type(value) is str:
                    changed = value.rpartition(".")[2] in self._changed
                    further = [] if changed else self._held(value, edge.caller, deepest - 1) or []
                if not further:
                    return None
                found += further
        return found

    @cached_property
    def _changed(self) -> frozenset[str]:
        """The last names of what anything sets an entry of, calls a method of that changes it, or hands to a function
        that does either.
        """
        found = set(self._set)
        # Stars and the sign of those that are given by name are no part of a name.
        changed = found | {sign + name for name in found for sign in ("=", "*", "**")}
        functions = {
            facts.name
            for _, facts in self._resolver.nesting.functions
            for param in facts.params
            if param.name in changed
        }
        for name in sorted(functions):
            for item in self._resolver.nesting.calls.get(name, ()):
                given = [*item.call.args, *(value for _, value in item.call.keywords)]
                found.update(value.rpartition(".")[2] for value in given if type(value) is str)
        return frozenset(found)

    @cached_property
    def _set(self) -> frozenset[str]:
        return frozenset(self._setting())

    def _setting(self) -> Iterator[str]:
        for _, facts in self._resolver.nesting.functions:
            for name in facts.unclear:
                if name.endswith(ENTRIES):
                    yield name.removesuffix(ENTRIES).rpartition(".")[2]
        for method in sorted(_CHANGING):
            for item in self._resolver.nesting.calls.get(method, ()):
                if type(item.call.func) is str:
                    yield last_name(item.call.func.rpartition(".")[0])
        for item in (*self._resolver.nesting.calls.get("setattr", ()), *self._resolver.nesting.calls.get("vars", ())):
            yield last_name(item.call.args[0]) if item.call.args else ""


def _given(value: Value) -> dict[str, Value] | None:
    """The entries of what is written out."""
    form = value[0] if type(value) is tuple else ""
    if form == "map":
        return dict(value[1])
    if form == "call" and last_name(value[1]) in OF_KEYWORDS:
        positional = _given(value[2][0]) if len(value[2]) == 1 else None
        if value[2] and positional is None:
            return None
        return {**(positional or {}), **dict(value[3])}
    return None
