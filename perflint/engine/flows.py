"""Trees of files with their definitions and uses, for the inspection of a file and of those that ask about it."""

from __future__ import annotations

import ast
from collections.abc import Callable

from perflint.engine.texts import Texts
from perflint.errors import SourceError
from perflint.project.discovery import FoundFile
from perflint.syntax.file import SourceFile
from perflint.syntax.flow import Flow
from perflint.syntax.parse import plainly_parsed
from perflint.syntax.tree import Tree

#: Of text whose trees are kept at hand when not all are: some 75 MB of them.
_KEPT_BYTES = 2_000_000


class Flows:
    """Read when they are first asked for, and kept for the next file that asks, the last ones at least."""

    def __init__(self, texts: Texts, file_of: Callable[[str], FoundFile | None]) -> None:
        self.texts = texts
        self.file_of = file_of
        #: In the order in which they were asked for last.
        self._known: dict[str, Flow] = {}
        self._bytes = 0

    def of(self, path: str) -> Flow | None:
        """The flow of a file as it was when the run began; None where it cannot be read."""
        known = self._known.pop(path, None)
        if known is None:
            known = self._read(path)
            if known is None:
                return None
            self._make_room(len(known.tree.source.text))
        self._known[path] = known
        return known

    def taken(self, path: str) -> tuple[SourceFile, ast.Module | None] | None:
        """The text of a file with its tree, where they are at hand."""
        known = self._known.get(path)
        return (known.tree.source, known.tree.module) if known is not None else self.texts.trees.take(path)

    def with_module(self, source: SourceFile, module: ast.Module | None) -> Flow:
        """The flow of a file that is at hand. Raises SourceError for what does not parse."""
        known = self._known.get(source.path)
        if known is None:
            known = Flow(Tree(source, module if module is not None else plainly_parsed(source)))
            self._make_room(len(source.text))
            self._known[source.path] = known
        return known

    def _read(self, path: str) -> Flow | None:
        source, module = self.texts.trees.take(path) or (None, None)
        try:
            if source is None:
                file = self.file_of(path)
                source = self.texts.source(file) if file is not None else None
            if source is None or path in self.texts.moved:
                return None
            return Flow(Tree(source, module if module is not None else plainly_parsed(source)))
        except SourceError:
            return None

    def _make_room(self, size: int) -> None:
        self._bytes += size
        if self.texts.trees.keeps_all:
            return
        while self._bytes > _KEPT_BYTES and self._known:
            oldest = next(iter(self._known))
            self._bytes -= len(self._known.pop(oldest).tree.source.text)
