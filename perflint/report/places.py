"""Where a finding stands: the lines of its file, its columns in other units, its path from the git root."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from perflint.finding import Finding, Heat, Hop, Observed, Problem, Report, Span, Verdict
from perflint.report.visible import visible_prose
from perflint.syntax import notebook_json


def split_lines(text: str) -> list[str]:
    """Lines as Python splits source: `\\n`, `\\r\\n` and `\\r` end one, Unicode separators do not."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


#: Files and cells whose lines are kept at hand.
_MOST_FILES = 32


@dataclass
class Texts:
    """The lines of every file a report may quote. A finding in a notebook sees the lines of its cell."""

    texts: Mapping[str, str]
    _lines: dict[tuple[str, int | None], list[str]] = field(default_factory=dict)
    _cells: dict[str, list[notebook_json.Cell]] = field(default_factory=dict)

    def lines(self, path: str, cell: int | None = None) -> list[str]:
        """Lines of the file (or cell, counted from 1); empty where the text is not known."""
        key = (path, cell)
        if key not in self._lines:
            found = None if cell is None else self._cell(path, cell)
            text = self.texts.get(path, "") if found is None else found.text
            if len(self._lines) >= _MOST_FILES:
                self._lines.clear()  # findings come file by file, and the lines of all are much
            self._lines[key] = split_lines(text) if text else []
        return self._lines[key]

    def raw_span(self, finding: Finding) -> tuple[Span, bool]:
        """The span in the file as it lies on disk, and whether its columns can be trusted.

        For a notebook it is the line of the JSON text where the cell's line stands: what viewers of the file open.
        """
        cell = None if finding.cell is None else self._cell(finding.path, finding.cell)
        if cell is None:
            return finding.span, finding.cell is None
        first, last = cell.raw_line(finding.span.line), cell.raw_line(finding.span.end_line)
        return Span(first, 1, last, 1), False

    def raw_line(self, hop: Hop) -> int:
        """The line of a hop in the file as it lies on disk."""
        cell = None if hop.cell is None else self._cell(hop.path, hop.cell)
        return hop.line if cell is None else cell.raw_line(hop.line)

    def _cell(self, path: str, number: int) -> notebook_json.Cell | None:
        if path not in self._cells:
            self._cells[path] = notebook_json.cells_of(self.texts.get(path, ""))
        cells = self._cells[path]
        return cells[number - 1] if 0 < number <= len(cells) else None


def utf16_column(line: str, column: int) -> int:
    """The 1-based character `column` of `line` in UTF-16 code units, as SARIF viewers and editors count."""
    before = line[: column - 1]
    if before.isascii():
        return column
    return column + sum(char > "\uffff" for char in before)


def from_root(path: str, root: Path | None) -> str:
    """`path` (relative to the working directory) relative to `root`, links resolved, with forward slashes.

    A path outside `root` comes back absolute; without a root it is unchanged.
    """
    if root is None:
        return path
    resolved = _resolve(path)
    try:
        return resolved.relative_to(_resolve(str(root))).as_posix()
    except ValueError:
        return resolved.as_posix()


@lru_cache(maxsize=4096)
def _resolve(path: str) -> Path:
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links, or a name the system refuses
        return Path(path).absolute()


def place(finding: Finding) -> str:
    """`train.py:42:9`; in a notebook `train.ipynb:cell 3:2:1`."""
    cell = "" if finding.cell is None else f"cell {finding.cell}:"
    return f"{finding.path}:{cell}{finding.span.line}:{finding.span.column}"


def problem_place(problem: Problem) -> str:
    parts = [problem.path, problem.line, problem.column if problem.line is not None else None]
    return ":".join(str(part) for part in parts if part is not None)


def cell_words(finding: Finding) -> str:
    """`cell 3, line 2: ` of a finding in a notebook, for formats whose own place is a line of the file on disk."""
    return "" if finding.cell is None else f"cell {finding.cell}, line {finding.span.line}: "


#: So many related places are listed in a line of text.
_MOST_LISTED = 6


def related_words(finding: Finding) -> str:
    """`train.py:60 `b.item()`, train.py:90 `c.item()``: the related places, the first few of them; empty for none."""
    return _listed([hop_text(hop) for hop in finding.related])


def other_places(finding: Finding) -> str:
    """`60, 90, b.py:14`: where else the defect of a finding is, by lines of its own file and places in others."""
    here = (finding.path, finding.cell)
    same = [hop for hop in finding.related if hop.code and (hop.path, hop.cell, hop.line) != (*here, finding.span.line)]
    told = [str(hop.line) if (hop.path, hop.cell) == here else hop_place(hop) for hop in same]
    return _listed(list(dict.fromkeys(told)))


def _listed(parts: list[str]) -> str:
    more = len(parts) - _MOST_LISTED
    return ", ".join(parts[:_MOST_LISTED]) + (f", and {more} more" if more > 0 else "")


def in_reading_order(report: Report) -> list[Finding]:
    """By path and position, cells of a notebook in their order."""
    return sorted(report.findings, key=lambda one: (one.path, one.cell or 0, one.span, one.code, one.message))


def worst_first(findings: list[Finding]) -> list[Finding]:
    """By impact, how often a step that trains pays, part of the program, confidence and heat, worst first; ties stay in
    the order given. Of those that weigh as much, the first of each rule come before the second ones, so that no report
    begins with one thing said ten times.

    What an observed run has shown goes before: findings that it confirmed by their cost, the dearest first, and last
    those that it refuted.
    """
    ranks: dict[int, int] = {}
    said: Counter[object] = Counter()
    for one in sorted(findings, key=lambda one: -one.heat):
        kind = (one.code, _merits(one))
        said[kind] += 1
        ranks[id(one)] = said[kind]
    return sorted(findings, key=lambda one: (*_merits(one), ranks[id(one)], -one.heat))


def _merits(one: Finding) -> tuple[int, float, int, int, int, int]:
    return (*_weight(one.observed), -one.impact, -one.paid, one.part.rank, -one.confidence)


def _weight(observed: Observed | None) -> tuple[int, float]:
    if observed is None or observed.verdict is Verdict.NOT_REACHED:
        return (1, 0.0)
    if observed.verdict is Verdict.REFUTED:
        return (2, 0.0)
    # Costs that differ in the noise of the model only leave the order to impact.
    return (0, -round(observed.share or 0.0, 3))


def observed_line(finding: Finding) -> str:
    """What an observed run showed at a finding; empty where there is no evidence."""
    return "" if finding.observed is None else finding.observed.phrase


def why_hot(finding: Finding) -> str:
    """`runs every step: train.py:88 ... -> model.py:40 ...`; empty for code that is not hot."""
    if not finding.route:
        return "" if finding.heat is Heat.ONCE else finding.heat.phrase
    return f"{finding.heat.phrase}: {' -> '.join(hop_text(hop) for hop in finding.route)}"


def hop_text(hop: Hop) -> str:
    """`train.py:88 `for batch in loader``. Text that brings its own backticks is words, not source."""
    text = hop.text if "`" in hop.text or not hop.text else f"`{hop.text}`"
    return f"{hop_place(hop)} {text}".rstrip()


def hop_place(hop: Hop) -> str:
    """`train.py:88`; in a notebook `train.ipynb:cell 3:2`."""
    return f"{hop.path}:{hop.line}" if hop.cell is None else f"{hop.path}:cell {hop.cell}:{hop.line}"


def explained(finding: Finding) -> list[str]:
    """What a report in lines says below the message of a finding: a line each."""
    parts = [f"observed: {seen}"] if (seen := observed_line(finding)) else []
    told = (
        ("why hot", why_hot(finding)), ("see also", related_words(finding)), ("what to do", finding.advice),
    )  # fmt: skip
    return parts + [f"{name}: {visible_prose(words)}" for name, words in told if words]
