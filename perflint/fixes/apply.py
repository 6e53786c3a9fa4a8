"""Fixes to text: one round, in which a fix that touches what an earlier one changes gives way. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from perflint.finding import Fix
from perflint.syntax.file import NEWLINE, SourceFile


@dataclass(frozen=True, slots=True)
class Applied:
    """`text` with the edits of `taken`. The fixes in `left` gave way to these, those in `refused` can never be made."""

    text: str
    taken: tuple[Fix, ...]
    left: tuple[Fix, ...]
    refused: tuple[Fix, ...] = ()


def apply_fixes(source: SourceFile, fixes: Sequence[Fix]) -> Applied:
    """Write the edits of `fixes` into the text of `source`, all of a fix or none.

    The first by position wins; two fixes that insert the same text at one place share it. What is inserted gets the
    line ends of the file; everything outside the edits stays as it is.
    """
    places = _Places(source.text)
    made = _Made()
    taken, left, refused = [], [], []
    for fix in sorted(fixes, key=lambda fix: sorted((edit.span, edit.text) for edit in fix.edits)):
        edits = places.edits(fix)
        if edits is None:
            refused.append(fix)
        elif made.take(edits):
            taken.append(fix)
        else:
            left.append(fix)
    return Applied(made.write(source), tuple(taken), tuple(left), tuple(refused))


@dataclass(frozen=True, slots=True)
class _Replacement:
    """Offsets in the text as it is on disk, with the file's own line ends."""

    start: int
    end: int
    text: str

    @property
    def place(self) -> tuple[int, int]:
        return self.start, self.end


class _Places:
    """Lines and columns to offsets."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in NEWLINE.finditer(text))]
        self._ends = [*(match.start() for match in NEWLINE.finditer(text)), len(text)]

    def edits(self, fix: Fix) -> list[_Replacement] | None:
        """In order; None when one lies outside the text or two of them overlap."""
        found = []
        for edit in fix.edits:
            start = self._offset(edit.span.line, edit.span.column)
            end = self._offset(edit.span.end_line, edit.span.end_column)
            if start is None or end is None or end < start:
                return None
            found.append(_Replacement(start, end, edit.text))
        # Stable: what a fix inserts at one place stays in the order it gives.
        found.sort(key=lambda edit: edit.place)
        if not found or any(one.end > other.start for one, other in pairwise(found)):
            return None
        return found

    def _offset(self, line: int, column: int) -> int | None:
        if not 1 <= line <= len(self._starts) or column < 1:
            return None
        offset = self._starts[line - 1] + column - 1
        return offset if offset <= self._ends[line - 1] else None


class _Made:
    """The edits made so far, none of which touches another fix's."""

    def __init__(self) -> None:
        self._edits: list[_Replacement] = []
        self._places: list[tuple[int, int]] = []

    def take(self, edits: Sequence[_Replacement]) -> bool:
        """Add all of `edits`, unless one of them touches what is there. Those that are there already are shared."""
        if all(self._has(edit) for edit in edits):
            return True
        fresh = [edit for edit in edits if not (edit.start == edit.end and self._has(edit))]
        if any(self._touches(edit) for edit in fresh):
            return False
        for edit in fresh:
            at = bisect_right(self._places, edit.place)
            self._edits.insert(at, edit)
            self._places.insert(at, edit.place)
        return True

    def _has(self, edit: _Replacement) -> bool:
        at = bisect_left(self._places, edit.place)
        return edit in self._edits[at : bisect_right(self._places, edit.place)]

    def _touches(self, edit: _Replacement) -> bool:
        at = bisect_left(self._places, edit.place)
        return any(_touch(edit, other) for other in self._edits[max(at - 1, 0) : at + 2])

    def write(self, source: SourceFile) -> str:
        parts, done = [], 0
        for edit in self._edits:
            parts += [source.text[done : edit.start], edit.text.replace("\n", source.newline)]
            done = edit.end
        parts.append(source.text[done:])
        return "".join(parts)


def _touch(one: _Replacement, other: _Replacement) -> bool:
    """Whether it matters which of two edits is made first, or only one can be."""
    if one.start == one.end or other.start == other.end:
        # What is inserted at an edge of changed text may have been meant for the text that was there.
        return one.start <= other.end and other.start <= one.end
    return one.start < other.end and other.start < one.end
