"""A text being rewritten in place: every character keeps its line and its UTF-8 byte column."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import TypeAlias

from perflint.syntax.file import NEWLINE

#: Line (from 1) and UTF-8 byte column (from 0), as `ast` counts.
Position: TypeAlias = tuple[int, int]


class Rewriting:
    """`original` is never changed; later edits go above earlier ones."""

    def __init__(self, original: str) -> None:
        self.original = original
        self.changed = False

    @cached_property
    def _characters(self) -> list[str]:
        return list(self.original)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(end.end() for end in NEWLINE.finditer(self.original))]

    def blank(self, start: int, end: int) -> None:
        """White space of the same width from `start` to `end`; line ends stay."""
        self.changed = True
        for index in range(start, end):
            character = self.original[index]
            if character not in "\r\n":
                self._characters[index] = " " * len(character.encode("utf-8", "surrogatepass"))

    def replace(self, start: int, text: str) -> None:
        """Put ASCII `text` over the ASCII characters at `start`."""
        self.changed = True
        self._characters[start : start + len(text)] = text

    def text(self) -> str:
        return "".join(self._characters)

    def position(self, offset: int) -> Position:
        line = bisect_right(self._starts, offset)
        before = self.original[self._starts[line - 1] : offset]
        return line, len(before.encode("utf-8", "surrogatepass"))
