"""Open documents as the editor has them: files of one part, and notebooks with a part for each cell."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from perflint.finding import Edit, Finding, Span
from perflint.lsp.analysis import Result
from perflint.syntax.file import SourceFile
from perflint.syntax.notebook import Notebook


@dataclass
class Part:
    """What the editor knows by one URI: a file's text, or a cell's."""

    uri: str
    text: str
    version: int | None
    is_code: bool = True

    @property
    def source(self) -> SourceFile:
        return SourceFile(self.uri, self.text)


@dataclass
class Document:
    """What is checked as one. `result` is of version `checked`; while that is the present one, `settled` is set."""

    uri: str
    file: Path
    version: int | None
    parts: list[Part]
    is_notebook: bool = False
    result: Result | None = None
    checked: int | None = None
    settled: asyncio.Event = field(default_factory=asyncio.Event)

    def source(self) -> SourceFile:
        if not self.is_notebook:
            return SourceFile(str(self.file), self.parts[0].text)
        cells = [{"cell_type": "code" if part.is_code else "markdown", "source": part.text} for part in self.parts]
        return Notebook(str(self.file), json.dumps({"cells": cells}))

    def part_of(self, cell: int | None) -> Part:
        return self.parts[(cell or 1) - 1]

    def findings_in(self, uri: str) -> Iterator[tuple[Finding, Part]]:
        """Those of one part, by its URI."""
        for finding in self.result.findings if self.result is not None else ():
            part = self.part_of(finding.cell)
            if part.uri == uri:
                yield finding, part

    def rewritten(self, text: str) -> Iterator[tuple[Part, Edit]]:
        """What has to change in which part for `source()` to say `text`. Raises SourceError."""
        source = self.source()
        texts = source.cells_of(text) if isinstance(source, Notebook) else {1: text}
        for number, after in texts.items():
            part = self.part_of(number)
            if after != part.text:
                yield part, smallest_edit(part.source, after)


def smallest_edit(source: SourceFile, text: str) -> Edit:
    """One edit of whole lines that makes `text` of `source`: those at the beginning and the end that stay are left."""
    before, after = source.lines, SourceFile(source.path, text).lines
    first = 0
    while first < min(len(before), len(after)) and before[first] == after[first]:
        first += 1
    last = 0
    while last < min(len(before), len(after)) - first and before[-1 - last] == after[-1 - last]:
        last += 1
    lines = after[first : len(after) - last]
    if last:
        return Edit(Span(first + 1, 1, len(before) - last + 1, 1), "".join(f"{line}\n" for line in lines))
    end = Span(len(before), len(before[-1]) + 1, len(before), len(before[-1]) + 1)
    if first == len(before):
        return Edit(end, "".join(f"\n{line}" for line in lines))
    if not lines and first:
        # All lines from here to the end go, and with them the line end before.
        return Edit(Span(first, len(before[first - 1]) + 1, end.end_line, end.end_column), "")
    return Edit(Span(first + 1, 1, end.end_line, end.end_column), "\n".join(lines))
