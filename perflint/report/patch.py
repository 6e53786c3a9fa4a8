"""A fix as the lines of a unified diff. For reading only: whoever applies fixes checks far more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain

from perflint.finding import Edit

_CONTEXT = 2


@dataclass(frozen=True, slots=True)
class DiffLine:
    """`sign` is one of ` `, `-`, `+` and `@`."""

    sign: str
    text: str


def diff(lines: Sequence[str], edits: Sequence[Edit]) -> list[DiffLine]:
    """The hunks that `edits` make of `lines`; empty where an edit lies outside the text or two overlap."""
    ordered = sorted(edits, key=lambda edit: edit.span)
    if any(not 1 <= edit.span.line <= edit.span.end_line <= len(lines) for edit in ordered):
        return []
    shift = 0
    shown: list[DiffLine] = []
    for group in _groups(ordered):
        first = max(group[0].span.line - _CONTEXT, 1)
        last = min(max(edit.span.end_line for edit in group) + _CONTEXT, len(lines))
        old = list(lines[first - 1 : last])
        new = _edited(old, group, first)
        if new is None:
            return []
        shown.append(DiffLine("@", f"@@ -{first},{len(old)} +{first + shift},{len(new)} @@"))
        shown += _hunk(old, new)
        shift += len(new) - len(old)
    return shown


def _groups(ordered: Sequence[Edit]) -> Iterator[list[Edit]]:
    """Edits whose context would touch stand in one hunk."""
    group: list[Edit] = []
    end = 0
    for edit in ordered:
        if group and edit.span.line > end + 2 * _CONTEXT + 1:
            yield group
            group = []
        group.append(edit)
        end = max(end, edit.span.end_line)
    if group:
        yield group


def _edited(old: list[str], group: list[Edit], first: int) -> list[str] | None:
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line) + 1)
    text = "\n".join(old)
    done = len(text) + 1
    for edit in reversed(group):
        begin = starts[edit.span.line - first] + edit.span.column - 1
        end = starts[edit.span.end_line - first] + edit.span.end_column - 1
        if not 0 <= begin <= end <= min(done, len(text) + 1):
            return None
        text = text[:begin] + edit.text + text[end:]
        done = begin
    return text.split("\n")


def _hunk(old: list[str], new: list[str]) -> Iterator[DiffLine]:
    for tag, from_old, to_old, from_new, to_new in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from (DiffLine(" ", line) for line in old[from_old:to_old])
            continue
        removed = (DiffLine("-", line) for line in old[from_old:to_old])
        yield from chain(removed, (DiffLine("+", line) for line in new[from_new:to_new]))
