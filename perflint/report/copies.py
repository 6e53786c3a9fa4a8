"""Copies of code: what is found in one of them is found in all, which is one finding with the other files as places.

Every format prints one finding for identical files. Formats for people also print one for identical functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from perflint.finding import Finding, Verdict
from perflint.report.places import split_lines

#: So much of a file is the same by chance: an example of a few lines, a stub.
_LEAST_LINES = 8


class Copies:
    """Which findings stand in copies of one text. `texts` are those of the files, by path."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._lines: dict[str, list[str]] = {}

    def in_files(self, findings: Iterable[Finding]) -> Callable[[Finding], object]:
        """By finding, what those in copies of one file have in common; None for one in no copy."""
        paths: dict[str, set[str]] = {}
        for one in findings:
            if one.cell is None and (text := self._texts.get(one.path, "")).count("\n") >= _LEAST_LINES:
                paths.setdefault(text, set()).add(one.path)
        copied = {path for same in paths.values() if len(same) > 1 for path in same}
        return lambda one: (self._texts[one.path], *_same(one)) if one.path in copied else None

    def in_functions(self, one: Finding) -> object:
        """What findings in copies of one function have in common; None outside of functions."""
        found = None if _is_confirmed(one) else self.function_around(one)
        if found is None:
            return None
        first, last = found
        return ("\n".join(self._lines[one.path][first:last]), one.span.line - first, *_same(one)[1:])

    def function_around(self, one: Finding) -> tuple[int, int] | None:
        """First and last line (exclusive) of the function around a finding; None where there is none of some lines."""
        if one.cell is not None:
            return None
        lines = self._lines.get(one.path)
        if lines is None:
            lines = self._lines[one.path] = split_lines(self._texts.get(one.path, ""))
        return _function_around(lines, one.span.line - 1)


def _same(one: Finding) -> tuple[object, ...]:
    """What the findings of one defect in several copies agree in, whatever the way to them is."""
    observed = one.observed and (one.observed.verdict, one.observed.per_step)
    return (one.span, one.span.column, one.code, one.message, one.advice, one.heat, one.impact, observed)


def _is_confirmed(one: Finding) -> bool:
    return one.observed is not None and one.observed.verdict is Verdict.CONFIRMED


def _function_around(lines: Sequence[str], at: int) -> tuple[int, int] | None:
    """First and last line (exclusive) of the function around a line, None where it has only a few."""
    if at >= len(lines):
        return None  # the file has changed since
    first, depth = at, _depth(lines[at])
    while first > 0 and depth > 0:
        first -= 1
        line = lines[first]
        if line.strip() and not line.lstrip().startswith("#") and _depth(line) < depth:
            depth = _depth(line)
            if _begins(line):
                break
    if not _begins(lines[first]):
        return None
    last = at + 1
    while last < len(lines) and (not lines[last].strip() or _depth(lines[last]) > depth):
        last += 1
    return (first, last) if last - first >= _LEAST_LINES else None


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _begins(line: str) -> bool:
    return line.lstrip().startswith(("def ", "async def "))
