"""The source lines of a finding with its span underlined, as plain text of known width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from perflint.finding import Span
from perflint.report.visible import cells

_MOST_ROWS = 4
_CUT = "..."


class Row(NamedTuple):
    """One line of source as shown, and the carets below it. `line` is None where lines are left out."""

    line: int | None
    text: str
    carets: str


def rows(lines: Sequence[str], span: Span, width: int) -> list[Row]:
    """At most four rows of at most `width` columns; a long span keeps its first lines and its last.

    Columns that lie outside the text are moved to its end: the file may have changed since it was read.
    """
    last = min(span.end_line, len(lines))
    if not 1 <= span.line <= last:
        return []
    numbers: list[int | None] = list(range(span.line, last + 1))
    if len(numbers) > _MOST_ROWS:
        numbers = [*numbers[:2], None, numbers[-1]]
    shown = [
        Row(None, _CUT, "") if number is None else _row(lines[number - 1], number, span, width) for number in numbers
    ]
    return _dedent(shown) if len(shown) > 1 else shown


def _row(line: str, number: int, span: Span, width: int) -> Row:
    line = line.rstrip("\r\n")
    indent = len(line) - len(line.lstrip())
    start = span.column - 1 if number == span.line else indent
    end = span.end_column - 1 if number == span.end_line else len(line.rstrip())
    start = min(max(start, 0), len(line))
    end = min(max(end, start), len(line))
    # Only what can be seen is measured: a line may be a megabyte of data.
    skipped = max(start - 2 * width, 0)
    shown = cells(line[skipped : min(end, start + width) + 2 * width])
    start, end, count = start - skipped, min(end - skipped, len(shown)), len(line) - skipped
    offsets = [0]
    for _, columns in shown:
        offsets.append(offsets[-1] + columns)
    left, right = _window(offsets, start, end, width)
    before, after = _CUT if left or skipped else "", _CUT if right < count else ""
    text = before + "".join(part for part, _ in shown[left:right]) + after
    begin = offsets[max(start, left)] - offsets[left] + len(before)
    # A span of no width still points somewhere.
    length = max(offsets[min(end, right)] - offsets[max(start, left)], 1)
    return Row(number, text.rstrip(), " " * begin + "^" * length)


def _window(offsets: list[int], start: int, end: int, width: int) -> tuple[int, int]:
    """Which characters to show, so that the span's beginning and as much around it as fits is seen."""
    count = len(offsets) - 1
    if offsets[count] <= width:
        return 0, count
    room = max(width - 2 * len(_CUT), 1)
    # The span in the middle where it fits, else its beginning a little after the cut.
    slack = max(room - (offsets[end] - offsets[start]), min(room // 4, 16))
    first = max(offsets[start] - slack // 2, 0)
    first = min(first, max(offsets[count] - room, 0))
    left = next(index for index in range(count + 1) if offsets[index] >= first)
    left = min(left, start)
    right = max((index for index in range(left, count + 1) if offsets[index] - offsets[left] <= room), default=left)
    return left, right


def _dedent(shown: list[Row]) -> list[Row]:
    """Drop the indentation that all rows share: it says nothing and costs width."""
    common = min(
        (len(row.text) - len(row.text.lstrip(" ")) for row in shown if row.line is not None and row.text), default=0
    )
    return [row if row.line is None else Row(row.line, row.text[common:], _shift(row.carets, common)) for row in shown]


def _shift(carets: str, by: int) -> str:
    return carets[by:] if carets[:by].isspace() or not by else carets
