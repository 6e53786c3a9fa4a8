"""Summaries as JSON that is quick to read: most of what code says it says again, and stands here once.

    {"table": [...], "functions": [...], "calls": [...], ...}

Every value and name of a file is a row of its table: a string, a number, or a list of the rows that a tuple is made of,
all of which come before it. Facts of one class are columns, of row numbers or of what JSON has itself. A column of
facts that others hold, such as the calls of functions, says how many of them each one takes, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import attrgetter
from typing import Any, Literal, TypeAlias, TypeVar

from perflint.ir.sharing import NOTHING, Sharing
from perflint.ir.summary import (
    Branch,
    CallFacts,
    ClassFacts,
    Context,
    EffectFacts,
    FunctionFacts,
    LoopFacts,
    Param,
    ReadFacts,
    StatementFacts,
    Summary,
    record,
)

#: What a column holds: numbers of rows, what JSON has itself, dicts of names and values, or how many facts of a class.
_Column: TypeAlias = Literal[
    "row", "plain", "dict", "params", "contexts", "loops", "calls", "reads", "does", "branches"
]
_Packed: TypeAlias = "dict[str, Any]"
_Made = TypeVar("_Made")

#: By field of `FunctionFacts`, the class of the facts there, and which of its fields are rows of the table.
_RECORDS: dict[str, tuple[type[Any], tuple[bool, ...]]] = {
    "params": (Param, (True, True, True)),
    "contexts": (Context, (False, True, True, False, False, False, False)),
    "loops": (LoopFacts, (False, False, True, True, True, True, False)),
    "calls": (CallFacts, (True, True, True, False, False, False)),
    "reads": (ReadFacts, (True, False, False)),
    "does": (EffectFacts, (True, True, True, False, False)),
    "branches": (Branch, (False, True, False, False, False, False, False)),
}

_FUNCTION: dict[str, _Column] = {
    "qualname": "row",
    "line": "plain",
    "end_line": "plain",
    "owner": "row",
    "in_class": "row",
    "params": "params",
    "decorators": "row",
    "is_generator": "plain",
    "contexts": "contexts",
    "loops": "loops",
    "calls": "calls",
    "reads": "reads",
    "binds": "dict",
    "unclear": "row",
    "annotations": "dict",
    "returns": "row",
    "returns_annotation": "row",
    "yields": "row",
    "effects": "row",
    "does": "does",
    "uncertain": "row",
    "identifiers": "plain",
    "questions": "row",
    "tells": "row",
    "stores": "row",
    "branches": "branches",
    "computed": "dict",
    "tests": "row",
    "mixed": "row",
    "picks": "row",
}
_CLASS: dict[str, _Column] = {
    "qualname": "row",
    "line": "plain",
    "bases": "row",
    "keywords": "row",
    "decorators": "row",
    "methods": "row",
    "attributes": "dict",
    "annotations": "dict",
    "computed": "dict",
    "unclear": "row",
}
_STATEMENT: dict[str, _Column] = {"line": "plain", "end_line": "plain", "identifiers": "plain", "imports": "plain"}


def packed(summary: Summary) -> _Packed:
    """What `unpacked` makes an equal summary of."""
    packer = _Packer()
    return {
        "imports": summary.imports,
        "also": summary.also,
        "stars": summary.stars,
        "needs": summary.needs,
        "functions": packer.facts(summary.functions, _FUNCTION),
        "classes": packer.facts(summary.classes, _CLASS),
        "statements": packer.columns(summary.statements, _STATEMENT),
        "texts": summary.texts,
        "tests": summary.holds_tests,
        **{name: packer.records(name) for name in _RECORDS},
        "table": packer.table,  # last: all else adds to it
    }


def unpacked(data: _Packed, sharing: Sharing | None = None) -> Summary:
    """Raises KeyError, TypeError, ValueError, AttributeError or IndexError for what `packed` has not made."""
    reader = _Unpacker(data, sharing)
    return Summary(
        imports=data["imports"],
        also={name: tuple(others) for name, others in data["also"].items()},
        stars=tuple(data["stars"]),
        needs=tuple([(module, tuple(names)) for module, names in data["needs"]]),
        functions=reader.facts(FunctionFacts, data["functions"], _FUNCTION),
        classes=reader.facts(ClassFacts, data["classes"], _CLASS),
        statements=tuple([StatementFacts(*row) for row in reader.rows(data["statements"], _STATEMENT)]),
        texts=str(data["texts"]),
        holds_tests=bool(data["tests"]),
    )


class _Packer:
    def __init__(self) -> None:
        self.table: list[Any] = []
        self._rows: dict[Any, int] = {}
        self._held: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _RECORDS}

    def facts(self, facts: dict[str, Any], shape: dict[str, _Column]) -> list[Any]:
        """The names that facts have, and their columns."""
        return [self._all(facts), self.columns(facts.values(), shape)]

    def columns(self, facts: Iterable[Any], shape: dict[str, _Column]) -> list[list[Any]]:
        fields = attrgetter(*shape)
        columns = zip(*[fields(one) for one in facts])
        return [self._column(name, kind, column) for (name, kind), column in zip(shape.items(), columns)]

    def records(self, name: str) -> list[list[Any]]:
        """The columns of all facts of a class that were held by others so far."""
        columns = zip(*self._held[name])
        return [self._all(column) if is_row else list(column) for is_row, column in zip(_RECORDS[name][1], columns)]

    def _column(self, name: str, kind: _Column, items: tuple[Any, ...]) -> list[Any]:
        if kind == "row":
            return self._all(items)
        if kind == "plain":
            return list(items)
        if kind == "dict":
            return [self._all([part for entry in item.items() for part in entry]) if item else [] for item in items]
        held = self._held[name]
        for item in items:
            held += item
        return [len(item) for item in items]

    def _all(self, values: Iterable[Any]) -> list[int]:
        # Most of them are there, and need no call each. Numbers are not found so: see `_new`.
        known = self._rows.get
        return [row if (row := known(value)) is not None else self._new(value) for value in values]

    def _new(self, value: Any) -> int:
        # To a table 1 and True are one, so numbers go by their class as well.
        key = (type(value), value) if isinstance(value, (int, float)) else value
        found = self._rows.get(key)
        if found is None:
            made = self._all(value) if isinstance(value, tuple) else value
            found = self._rows[key] = len(self.table)
            self.table.append(made)
        return found


class _Unpacker:
    def __init__(self, data: _Packed, sharing: Sharing | None) -> None:
        self._table = table = _table(data["table"], sharing)
        self._value: Callable[[int], Any] = table.__getitem__
        self._held = {name: self._records(data[name], name) for name in _RECORDS}

    def facts(self, made: Callable[..., _Made], packed: list[Any], shape: dict[str, _Column]) -> dict[str, _Made]:
        names, columns = packed
        return dict(zip(map(self._value, names), [made(*row) for row in self.rows(columns, shape)]))

    def rows(self, columns: list[list[Any]], shape: dict[str, _Column]) -> Iterator[tuple[Any, ...]]:
        return zip(*[self._column(kind, items) for kind, items in zip(shape.values(), columns)])

    def _records(self, columns: list[list[Any]], name: str) -> Iterator[Any]:
        made, rows = _RECORDS[name]
        read = [map(self._value, items) if is_row else items for is_row, items in zip(rows, columns)]
        return (record(made, row) for row in zip(*read))

    def _column(self, kind: _Column, items: list[Any]) -> Iterable[Any]:
        if kind == "row":
            return map(self._value, items)
        if kind == "plain":
            return items
        if kind == "dict":
            return map(self._dict, items)
        held = self._held[kind]
        return [tuple(islice(held, count)) if count else () for count in items]

    def _dict(self, rows: list[int]) -> dict[str, Any]:
        parts = map(self._value, rows)
        return dict(zip(parts, parts)) if rows else NOTHING


def _table(rows: list[Any], sharing: Sharing | None) -> list[Any]:
    """Every row as what it stands for. With a `sharing`, strings are the same objects in all files: they are most of
    what files have in common, and tuples would be dearer to look up than they are large.
    """
    table: list[Any] = []
    add = table.append
    if sharing is None:
        for row in rows:
            add(tuple([table[part] for part in row]) if type(row) is list else row)
        return table
    once = sharing.once
    for row in rows:
        if type(row) is list:
            add(tuple([table[part] for part in row]))
        else:  # to a table, 1 and True are one
            add(once(row, row) if type(row) is str else row)
    return table
