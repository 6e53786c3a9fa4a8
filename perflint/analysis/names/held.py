"""What containers hold, as it is written: pairs of a list, entries of dicts that are copied one by one, rows.

Where `Iteration` says what an element may be, this says which values are the elements, so that the elements of elements
can be told: `for name, (function, weight) in self.losses.items()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from perflint.analysis.names.contents import Contents
from perflint.analysis.names.refs import FUNCTION, ParamValues, Refs, Scope
from perflint.analysis.names.written import Written
from perflint.ir.summary import Summary, Value
from perflint.torch_model.registries import PASSING_ON

_DEPTH = 6
#: So many values are looked at for one question.
_MOST = 64
_PAIRS = (".items", ".named_children", ".named_modules")


class Resolving(Protocol):
    """What this asks of the resolver that it answers for."""

    summaries: Mapping[str, Summary]
    leans: int
    param_values: ParamValues | None
    contents: Contents

    def refs(self, value: Value, scope: Scope) -> Refs: ...


class Held:
    """Answers for one resolver."""

    def __init__(self, resolver: Resolving, written: Written) -> None:
        self._resolver = resolver
        self._written = written

    def parts(self, value: Value, scope: Scope, index: object) -> Iterator[tuple[Value, Scope]]:
        """The values under an index, or those that iterating gives where it is None."""
        return self._parts(value, scope, index, _DEPTH, [_MOST])

    def _parts(
        self, value: Value, scope: Scope, index: object, depth: int, left: list[int]
    ) -> Iterator[tuple[Value, Scope]]:
        left[0] -= 1
        if value is None or depth <= 0 or left[0] < 0:
            return
        for inner, where in self._further(value, scope):
            yield from self._parts(inner, where, index, depth - 1, left)
        if isinstance(value, str):
            yield from self._resolver.contents.values(value, scope, index)
        elif value[0] == "item":
            for inner, where in self._parts(value[1], scope, value[2], depth - 1, left):
                yield from self._parts(inner, where, index, depth - 1, left)
        else:
            for inner in _written_in(value, index):
                yield inner, scope

    def _further(self, value: Value, scope: Scope) -> Iterator[tuple[Value, Scope]]:
        """The values that a value stands for, with the same elements."""
        if isinstance(value, str):
            definitions = self._written.definitions(value, scope)
            yield from (item for item in definitions if item != (value, scope))
            if not definitions and "." not in value:
                self._resolver.leans += 1
                if self._resolver.param_values is not None:
                    yield from self._resolver.param_values(scope, value)
        elif value[0] == "either":
            yield from ((part, scope) for part in value[1])
        elif value[0] == "call":
            yield from self._of_call(value, scope)

    def _of_call(self, value: Value, scope: Scope) -> Iterator[tuple[Value, Scope]]:
        base, last = called_on(value[1])
        if base is not None and not value[2] and last in ("values", "copy"):
            yield base, scope
        elif last in PASSING_ON:
            yield from ((item, scope) for item in value[2][:1])
        else:
            for ref in self._resolver.refs(value[1], scope):
                if ref.kind == FUNCTION:
                    facts = self._resolver.summaries[ref.path].functions[ref.name]
                    for given_back in () if facts.is_generator else facts.returns:
                        yield given_back, Scope(ref.path, ref.name)


def called_on(func: Value) -> tuple[Value, str]:
    """What a method is called on, None for a plain function, and its name."""
    if isinstance(func, str):
        base, _, last = func.rpartition(".")
        return base or None, last
    return (func[1], func[2]) if func[0] == "attr" else (None, "")


def _written_in(value: Value, index: object) -> Iterator[Value]:
    form = value[0]
    if form == "map":
        yield from (item for key, item in value[1] if is_under(key, index))
    elif form == "seq":
        is_place = type(index) is int and -len(value[1]) <= index < len(value[1])
        yield from (value[1][index],) if is_place else value[1]
    elif form in ("each", "table"):
        yield value[1]
    elif form == "call" and index is None:
        base, last = called_on(value[1])
        if last == "enumerate" and value[2]:
            yield ("seq", (None, ("item", value[2][0], None)))
        elif last == "zip":
            yield ("seq", tuple([("item", item, None) for item in value[2]]))
        elif base is not None and f".{last}" in _PAIRS:
            yield ("seq", (None, ("item", base, None)))


def is_under(key: str, index: object) -> bool:
    """Whether an entry of a dict is one that an index may give: under "" stand those whose keys are not texts."""
    return index is None or key == index or (not key and type(index) is not str)
