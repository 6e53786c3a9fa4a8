"""A notebook as one module: its code cells in order, and the way back from the module to cells and to the JSON text.

Every cell stands below a comment that begins it, and above an empty line, so that a comment at its end speaks about
nothing in the next one. A rewritten module is cut at these comments again, and of the JSON text only those strings
change whose line did.
"""

from __future__ import annotations

import dataclasses
import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from perflint.errors import SourceError
from perflint.finding import Edit, Finding, Hop, Problem, Span
from perflint.syntax import notebook_json
from perflint.syntax.file import SourceFile
from perflint.syntax.magics import hidden, python_of, restored
from perflint.syntax.notebook_json import Cell, Piece
from perflint.system.patterns import pattern

_MARK = pattern(r"^# %% \[cell (\d+), perflint\]\n", re.MULTILINE)
_LINE = pattern(r"[^\n]*\n|[^\n]+")
_ESCAPE = pattern(r"\\u[0-9a-fA-F]{4}|\\.|[^\\]+", re.DOTALL)
_LINE_WORD = pattern(r"\bline (\d+)\b")


@dataclass(frozen=True, slots=True)
class _Part:
    """One code cell in the module: its number (from 1, of all cells), its first line there, and its lines."""

    number: int
    first: int
    lines: tuple[str, ...]


class Notebook(SourceFile):
    """`text` is the module, `raw` the JSON text. `faults` are the cells that do not parse, which are left out.

    Raises SourceError for a text that is no notebook.
    """

    def __init__(self, path: str, raw: str, *, bom: bool = False) -> None:
        self._raw = raw
        try:
            self._cells = notebook_json.read_cells(raw)
        except ValueError as error:
            raise SourceError(str(error)) from error
        self._parts: list[_Part] = []
        super().__init__(path, self._module(path), bom=bom)

    @property
    def raw(self) -> str:
        return self._raw

    def _module(self, path: str) -> str:
        """The text of the module. Notes where each cell begins, and the cells that do not parse."""
        texts: list[str] = []
        line = 1
        for number, cell in enumerate(self._cells, 1):
            if not cell.is_code:
                continue
            try:
                body = python_of(cell.text)
            except SourceError as error:
                within = error.line or 1
                message = f"cell {number}, line {within}: {error.message}"
                self.faults += (Problem(path, message, cell.raw_line(within)),)
                body = hidden(cell.text)
            lines = tuple(SourceFile(path, body).lines)
            self._parts.append(_Part(number, line + 1, lines))
            texts.append(f"# %% [cell {number}, perflint]\n{body}\n\n")
            line += len(lines) + 2
        return "".join(texts)

    # Places

    def place(self, line: int) -> tuple[int, int]:
        """Cell and line in it of a line of the module; between two cells, the last line of the one before."""
        if not self._parts:
            return 1, 1
        part = self._part_at(line)
        return part.number, min(max(line - part.first + 1, 1), len(part.lines))

    def module_line(self, cell: int, line: int) -> int:
        """Line of the module. Raises KeyError for a cell that is none of code."""
        return {part.number: part.first for part in self._parts}[cell] + line - 1

    def _part_at(self, line: int) -> _Part:
        return self._parts[max(bisect_right([part.first - 1 for part in self._parts], line) - 1, 0)]

    def placed(self, finding: Finding) -> Finding:
        """A finding of the module, told in cells. Hops are left alone: they may lie in other files."""
        cell, span = self._placed_span(finding.span)
        fix = finding.fix
        if fix is not None:
            fix = dataclasses.replace(fix, edits=tuple(self._placed_edit(edit) for edit in fix.edits))
        return dataclasses.replace(
            finding,
            cell=cell,
            span=span,
            fix=fix,
            message=self.placed_words(finding.message, cell),
            advice=self.placed_words(finding.advice, cell),
        )

    def placed_hop(self, hop: Hop) -> Hop:
        cell, line = self.place(hop.line)
        return dataclasses.replace(hop, line=line, cell=cell)

    def placed_problem(self, problem: Problem) -> Problem:
        """A problem of the module, told in cells, with the line of the JSON text."""
        if problem.line is None:
            return problem
        cell, line = self.place(problem.line)
        message = f"cell {cell}, line {line}: {problem.message}"
        return dataclasses.replace(problem, message=message, line=self._cells[cell - 1].raw_line(line), column=None)

    def unplaced(self, finding: Finding) -> Finding:
        """The finding of the module that `placed` was given, but for its words and hops."""
        if finding.cell is None:
            return finding
        fix = finding.fix
        if fix is not None:
            fix = dataclasses.replace(fix, edits=tuple(self._unplaced_edit(edit) for edit in fix.edits))
        span = self._unplaced_span(finding.span, finding.cell)
        return dataclasses.replace(finding, cell=None, span=span, fix=fix)

    def _placed_span(self, span: Span) -> tuple[int, Span]:
        """Cell and span in it; a span that leaves its cell ends with the cell."""
        if not self._parts:
            return 1, span
        part = self._part_at(span.line)
        if span.line < part.first:
            return part.number, Span(1, 1, 1, 1)
        last = len(part.lines)
        line, column = span.line - part.first + 1, span.column
        if line > last:
            line, column = last, len(part.lines[-1]) + 1
        end, end_column = span.end_line - part.first + 1, span.end_column
        if end > last:
            end, end_column = last, len(part.lines[-1]) + 1
        return part.number, Span(line, column, end, end_column)

    def _placed_edit(self, edit: Edit) -> Edit:
        cell, span = self._placed_span(edit.span)
        part = self._part_at(edit.span.line)
        text = edit.text
        if edit.span.line >= part.first + len(part.lines):
            # Below the last line of a cell, which has no line end of its own.
            text = "\n" + text.removesuffix("\n")
        return Edit(span, text, cell)

    def _unplaced_edit(self, edit: Edit) -> Edit:
        assert edit.cell is not None
        return Edit(self._unplaced_span(edit.span, edit.cell), edit.text)

    def _unplaced_span(self, span: Span, cell: int) -> Span:
        shift = self.module_line(cell, 1) - 1
        return Span(span.line + shift, span.column, span.end_line + shift, span.end_column)

    def placed_words(self, text: str, here: int) -> str:
        """`text` with the lines of the module that it speaks of told in cells. What stands in backticks is source."""

        def told(match: re.Match[str]) -> str:
            cell, line = self.place(int(match[1]))
            return f"line {line}" if cell == here else f"line {line} of cell {cell}"

        parts = text.split("`")
        return "`".join(part if index % 2 else _LINE_WORD.sub(told, part) for index, part in enumerate(parts))

    # Writing

    def raw_of(self, text: str) -> str:
        """The JSON text in which the cells say what the module `text` says; everything else stays to the byte.

        Raises SourceError when the cells cannot be told apart in `text`.
        """
        parts: list[str] = []
        done = 0
        for number, source in self.cells_of(text).items():
            cell = self._cells[number - 1]
            if source != cell.text:
                parts += [self._raw[done : cell.start], self._source(cell, source)]
                done = cell.end
        return "".join([*parts, self._raw[done:]])

    def cells_of(self, text: str) -> dict[int, str]:
        """The source of each code cell, by number, once `text` has become this notebook's text. Raises as `raw_of`."""
        return {part.number: restored(body) for part, body in zip(self._parts, self._bodies(text))}

    def _bodies(self, text: str) -> list[str]:
        marks = list(_MARK.finditer(text))
        if [int(mark[1]) for mark in marks] != [part.number for part in self._parts]:
            raise SourceError("cannot be told apart into its cells again")
        starts = [0, *(mark.start() for mark in marks[1:])]
        ends = [*starts[1:], len(text)]
        bodies = []
        for mark, start, end in zip(marks, starts, ends):
            # What was put above the first cell belongs to it.
            body = text[start : mark.start()] + text[mark.end() : end]
            bodies.append(body[:-2] if body.endswith("\n\n") else body.removesuffix("\n"))
        return bodies

    def _source(self, cell: Cell, text: str) -> str:
        """The JSON value of a cell's new source."""
        if not cell.is_list:
            raw = self._raw[cell.start : cell.end]
            return f'"{"".join(self._merged(list(_raw_lines(raw)), text, quoted=False))}"'
        old = [(piece.value, self._raw[piece.start : piece.end]) for piece in cell.pieces]
        if [value for value, _ in old] != _LINE.findall(cell.text):
            old = []  # not one string a line: written anew
        strings = list(self._merged(old, text, quoted=True))
        opening, between, closing = self._layout(cell)
        return f"{opening}{between.join(strings)}{closing}" if strings else "[]"

    def _merged(self, old: Sequence[tuple[str, str]], text: str, *, quoted: bool) -> Iterator[str]:
        """The JSON of each line of `text`; lines that were there (`old`: value and JSON) keep theirs."""
        lines = _LINE.findall(text)
        matcher = SequenceMatcher(None, [value for value, _ in old], lines, autojunk=False)
        for tag, from_old, to_old, from_new, to_new in matcher.get_opcodes():
            if tag == "equal":
                yield from (raw for _, raw in old[from_old:to_old])
            else:
                for line in lines[from_new:to_new]:
                    dumped = json.dumps(line, ensure_ascii=self._raw.isascii())
                    yield dumped if quoted else dumped[1:-1]

    def _layout(self, cell: Cell) -> tuple[str, str, str]:
        """What stands before, between and after the strings of a cell's source."""
        pieces: tuple[Piece, ...] = cell.pieces
        if not pieces:
            return self._layout_of_another(cell)
        opening = self._raw[cell.start : pieces[0].start]
        closing = self._raw[pieces[-1].end : cell.end]
        if len(pieces) > 1:
            return opening, self._raw[pieces[0].end : pieces[1].start], closing
        blank = opening.removeprefix("[")
        return opening, f",{blank}" if blank else self._comma(), closing

    def _layout_of_another(self, cell: Cell) -> tuple[str, str, str]:
        """An empty list says nothing about its own layout: another cell's does."""
        others = (one for one in self._cells if one.is_list and one.pieces)
        other = next(others, None)
        return ("[", self._comma(), "]") if other is None or other is cell else self._layout(other)

    def _comma(self) -> str:
        return ", " if '", "' in self._raw or '": "' in self._raw else ","


def _raw_lines(raw: str) -> Iterator[tuple[str, str]]:
    """Value and JSON of every line of a JSON string, which is given with its quotes."""
    part = ""
    for escape in _ESCAPE.findall(raw[1:-1]):
        part += escape
        if escape == "\\n" or escape.lower() == "\\u000a":
            yield json.loads(f'"{part}"', strict=False), part
            part = ""
    if part:
        yield json.loads(f'"{part}"', strict=False), part
