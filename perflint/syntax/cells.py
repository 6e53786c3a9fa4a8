"""Findings of notebooks told in cells: analysis sees a notebook as one module, people see its cells."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from perflint.errors import PerflintError, SourceError
from perflint.finding import Finding, Hop, Problem
from perflint.syntax.file import SourceFile
from perflint.syntax.notebook_json import SUFFIX

if TYPE_CHECKING:
    from perflint.syntax.notebook import Notebook


_PLACE = re.compile(r"(\S+\.ipynb):(\d+)")


class Placing:
    """`source_of` gives the source of a path. It is asked for notebooks only, and once for each."""

    def __init__(self, source_of: Callable[[str], SourceFile]) -> None:
        self._source_of = source_of
        self._notebooks: dict[str, Notebook | None] = {}

    def finding(self, finding: Finding) -> Finding:
        """The finding with its places in notebooks told in cells."""
        if finding.path.endswith(SUFFIX):
            notebook = self._notebook(finding.path)
            finding = finding if notebook is None else notebook.placed(finding)
        if any(hop.path.endswith(SUFFIX) for hop in (*finding.route, *finding.related, *finding.behind)):
            route, related = tuple(map(self._hop, finding.route)), tuple(map(self._hop, finding.related))
            behind = tuple(map(self._hop, finding.behind))
            finding = dataclasses.replace(finding, route=route, related=related, behind=behind)
        return finding

    def problem(self, problem: Problem) -> Problem:
        notebook = self._notebook(problem.path)
        return problem if notebook is None else notebook.placed_problem(problem)

    def module_line(self, path: str, line: int, cell: int | None) -> int:
        """The line as analysis counts it. Raises PerflintError for a cell that holds no code."""
        notebook = self._notebook(path)
        if notebook is None or cell is None:
            return line
        try:
            return notebook.module_line(cell, line)
        except KeyError as error:
            raise PerflintError(f"{path}: cell {cell} is none of code") from error

    def words(self, text: str, path: str, cell: int | None) -> str:
        """`text`, which is about a line of that cell, with the places in notebooks that it names told in cells."""
        notebook = self._notebook(path)
        if notebook is not None and cell is not None:
            text = notebook.placed_words(text, cell)
        return _PLACE.sub(self._place, text)

    def _place(self, match: re.Match[str]) -> str:
        notebook = self._notebook(match[1])
        if notebook is None:
            return match[0]
        cell, line = notebook.place(int(match[2]))
        return f"{match[1]}:cell {cell}:{line}"

    def _hop(self, hop: Hop) -> Hop:
        notebook = self._notebook(hop.path)
        return hop if notebook is None else notebook.placed_hop(hop)

    def _notebook(self, path: str) -> Notebook | None:
        """None for a file of another type, and for one that is given as a module or cannot be read any more."""
        if not path.endswith(SUFFIX):
            return None
        if path not in self._notebooks:
            from perflint.syntax.notebook import Notebook

            try:
                source = self._source_of(path)
            except (KeyError, SourceError):
                self._notebooks[path] = None
            else:
                self._notebooks[path] = source if isinstance(source, Notebook) else None
        return self._notebooks[path]
