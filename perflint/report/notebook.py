"""Where the cells of a notebook stand in its JSON text. Positions only: cells are checked elsewhere."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from json import JSONDecoder
from typing import Any

_BLANK = re.compile(r"[ \t\n\r]*")
_DECODER = JSONDecoder(strict=False)
_ATOM = re.compile(r"[^\s,\]}]+")


@dataclass(frozen=True, slots=True)
class Cell:
    """Source of one cell, and for each of its lines the line of the JSON text where it begins."""

    text: str
    raw_lines: tuple[int, ...]

    def raw_line(self, line: int) -> int:
        return self.raw_lines[min(max(line, 1), len(self.raw_lines)) - 1]


@dataclass(frozen=True, slots=True)
class _String:
    value: str
    offset: int


def cells_of(text: str) -> list[Cell]:
    """All cells (of every type) in order; empty where the text is no notebook."""
    try:
        document, _ = _value(text, _skip(text, 0))
        cells = document["cells"]
        starts = [match.end() for match in re.finditer("\n", text)]
        return [_cell(one["source"], starts) for one in cells]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return []


def _cell(source: Any, starts: list[int]) -> Cell:
    pieces: list[_String] = source if isinstance(source, list) else [source]
    lines: list[int] = []
    for piece in pieces:
        # A piece is one line in practice; where it holds several, all stand on the same line of the JSON text.
        count = piece.value.count("\n") + (not piece.value.endswith("\n"))
        lines += [bisect_right(starts, piece.offset) + 1] * count
    return Cell("".join(piece.value for piece in pieces), tuple(lines) or (1,))


def _value(text: str, at: int) -> tuple[Any, int]:
    """The JSON value at `at`, its strings with their offsets, and the offset after it."""
    if text[at] == '"':
        value, end = _DECODER.raw_decode(text, at)
        return _String(value, at), end
    if text[at] in "[{":
        return _items(text, at)
    match = _ATOM.match(text, at)
    if match is None:
        raise ValueError(at)
    return None, match.end()


def _items(text: str, at: int) -> tuple[Any, int]:
    keyed = text[at] == "{"
    close = "}" if keyed else "]"
    members: dict[str, Any] = {}
    items: list[Any] = []
    at = _skip(text, at + 1)
    while text[at] != close:
        if keyed:
            key, at = _value(text, at)
            at = _skip(text, at)
            if text[at] != ":":
                raise ValueError(at)
            members[key.value], at = _value(text, _skip(text, at + 1))
        else:
            item, at = _value(text, at)
            items.append(item)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
        elif text[at] != close:
            raise ValueError(at)
    return (members if keyed else items), at + 1


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at
