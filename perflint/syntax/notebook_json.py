"""The JSON text of a notebook: its cells, and where each piece of their source stands in the text.

Positions only: what the source says, and how it is checked, is known elsewhere.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from perflint.system.patterns import pattern

SUFFIX = ".ipynb"

_BLANK = pattern(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()
_ATOM = pattern(r"[^\s,\]}]+")
_NEWLINE = pattern(r"\r\n|\r|\n")


class Piece(NamedTuple):
    """One JSON string of a cell's source, and where it stands in the text with its quotes."""

    value: str
    start: int
    end: int


class Cell(NamedTuple):
    """Source of one cell, and for each of its lines the line of the JSON text where it begins.

    `start` and `end` enclose the JSON value of the source, a list of `pieces` or (`is_list` False) a single one.
    """

    text: str
    raw_lines: tuple[int, ...]
    is_code: bool
    is_list: bool
    pieces: tuple[Piece, ...]
    start: int
    end: int

    def raw_line(self, line: int) -> int:
        return self.raw_lines[min(max(line, 1), len(self.raw_lines)) - 1]


class _Node(NamedTuple):
    """A JSON value: a string, a list or dictionary of nodes, None for all that is never looked at."""

    value: Any
    start: int
    end: int

    def get(self, *keys: str) -> Any:
        """The value below `keys`, None where there is none such."""
        node: _Node | None = self
        for key in keys:
            node = node.value.get(key) if node is not None and isinstance(node.value, dict) else None
        return None if node is None else node.value


def cells_of(text: str) -> list[Cell]:
    """All cells (of every type) in order; empty where the text is no notebook."""
    try:
        return read_cells(text)
    except ValueError:
        return []


def read_cells(text: str) -> list[Cell]:
    """As `cells_of`. Raises ValueError that says why the text is no notebook."""
    try:
        json.loads(text)  # what finds the positions is not as strict
        document = _value(text, _skip(text, 0))
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON: {error.msg.lower()} in line {error.lineno}") from error
    except (ValueError, IndexError, AttributeError) as error:
        raise ValueError("not valid JSON") from error
    except RecursionError as error:
        raise ValueError("nests too deep to be read") from error
    nodes = list(_cell_nodes(document))
    is_python = _is_python(document.get("metadata", "kernelspec", "language")) and _is_python(
        document.get("metadata", "language_info", "name")
    )
    starts = [0, *(match.end() for match in _NEWLINE.finditer(text))]
    return [_cell(node, starts, is_python=is_python) for node in nodes]


def _cell_nodes(document: _Node) -> Iterator[_Node]:
    """The cells of format 4, and of format 3 with its worksheets."""
    cells = document.get("cells")
    if cells is None:
        sheets = document.get("worksheets")
        cells = [cell for sheet in sheets for cell in sheet.get("cells") or ()] if isinstance(sheets, list) else None
    if not isinstance(cells, list):
        raise ValueError("not a notebook: it has no list of cells")  # noqa: TRY004 - the text is wrong, no type
    yield from cells


def _is_python(language: Any) -> bool:
    """Whether the language is Python, which it is where none is named."""
    return not isinstance(language, str) or "python" in language.lower()


def _cell(node: _Node, starts: list[int], *, is_python: bool) -> Cell:
    members: Mapping[str, _Node] = node.value if isinstance(node.value, dict) else {}
    source = members.get("source", members.get("input"))
    if source is None:
        return Cell("", (_line(starts, node.start),), is_code=False, is_list=False, pieces=(), start=0, end=0)
    is_list = isinstance(source.value, list)
    strings = source.value if is_list else [source]
    if not all(isinstance(one.value, str) for one in strings):
        raise ValueError("not a notebook: the source of a cell is no text")
    lines: list[int] = []
    for one in strings:
        # A piece is one line in practice; where it holds several, all stand on the same line of the JSON text.
        count = one.value.count("\n") + (not one.value.endswith("\n"))
        lines += [_line(starts, one.start)] * count
    return Cell(
        "".join(one.value for one in strings),
        tuple(lines) or (_line(starts, source.start),),
        is_code=node.get("cell_type") == "code"
        and is_python
        and _is_python(node.get("metadata", "vscode", "languageId")),
        is_list=is_list,
        pieces=tuple(Piece(one.value, one.start, one.end) for one in strings),
        start=source.start,
        end=source.end,
    )


def _line(starts: list[int], offset: int) -> int:
    return bisect_right(starts, offset)


def _value(text: str, at: int) -> _Node:
    """The JSON value at `at`."""
    if text[at] == '"':
        value, end = _DECODER.raw_decode(text, at)
        return _Node(value, at, end)
    if text[at] in "[{":
        return _items(text, at)
    match = _ATOM.match(text, at)
    if match is None:
        raise ValueError(at)
    return _Node(None, at, match.end())


def _items(text: str, start: int) -> _Node:
    keyed = text[start] == "{"
    close = "}" if keyed else "]"
    members: dict[str, _Node] = {}
    items: list[_Node] = []
    at = _skip(text, start + 1)
    while text[at] != close:
        if keyed:
            key = _value(text, at)
            at = _skip(text, key.end)
            if text[at] != ":" or not isinstance(key.value, str):
                raise ValueError(at)
            item = members[key.value] = _value(text, _skip(text, at + 1))
        else:
            item = _value(text, at)
            items.append(item)
        at = _skip(text, item.end)
        if text[at] == ",":
            at = _skip(text, at + 1)
        elif text[at] != close:
            raise ValueError(at)
    return _Node(members if keyed else items, start, at + 1)


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at
