"""One file's text: decoded, with positions that agree with what editors show."""

from __future__ import annotations

import ast
from functools import cached_property

from perflint.errors import SourceError
from perflint.finding import Finding, Problem, Span
from perflint.system.patterns import pattern

#: As Python's own parser ends lines, and nothing else does.
NEWLINE = pattern(r"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


class SourceFile:
    """Text of one file. `path` is relative to the working directory, with forward slashes, as findings print it.

    `text` keeps the file's own line endings; `lines` are without them, split as Python splits source
    (`\\n`, `\\r\\n`, `\\r`; form feeds and Unicode separators do not end a line).
    """

    #: What is left out of `text` because it does not parse, though the rest can be checked: cells of a notebook.
    faults: tuple[Problem, ...] = ()

    def __init__(self, path: str, text: str, *, encoding: str = "utf-8", bom: bool = False) -> None:
        self.path = path
        self.text = text
        self.encoding = encoding
        self.bom = bom

    @property
    def raw(self) -> str:
        """The text as it lies on disk, which for a notebook is not what is checked."""
        return self.text

    def raw_of(self, text: str) -> str:
        """What lies on disk once `text` has become this file's text. Raises SourceError where there is no such thing.

        Line endings are made the file's own where it has one kind; a file that mixes them keeps what `text` has.
        """
        if self.newline != "\n" and set(NEWLINE.findall(self.text)) == {self.newline}:
            return NEWLINE.sub(lambda _: self.newline, text)
        return text

    def placed(self, finding: Finding) -> Finding:
        """A finding of this text as people are told it; a notebook tells it in cells."""
        return finding

    def unplaced(self, finding: Finding) -> Finding:
        """The other way."""
        return finding

    @cached_property
    def lines(self) -> list[str]:
        text = self.text
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        return text.split("\n")

    @cached_property
    def newline(self) -> str:
        """The ending most lines have; `\\n` for a file of one line."""
        counts = dict.fromkeys(("\n", "\r\n", "\r"), 0)
        for ending in NEWLINE.findall(self.text):
            counts[ending] += 1
        return max(counts, key=lambda ending: counts[ending])

    def encode(self, text: str) -> bytes:
        """`text`, an edited form of this file's text, as the bytes to write: same encoding, mark and line endings.

        Raises SourceError for a character that the file's encoding lacks, and as `raw_of` does.
        """
        try:
            data = self.raw_of(text).encode(self.encoding)
        except UnicodeError as error:
            raise SourceError(f"cannot be written as {self.encoding}: {error}") from error
        return _BOM + data if self.bom else data

    def column(self, line: int, byte_offset: int) -> int:
        """Character column (from 1) of ast's UTF-8 byte offset in `line`."""
        text = self.lines[line - 1]
        if text.isascii():
            return byte_offset + 1
        return len(text.encode("utf-8", "surrogatepass")[:byte_offset].decode("utf-8", "replace")) + 1

    def span_of(self, node: ast.AST) -> Span:
        """Where a node stands, in characters: `ast` counts bytes."""
        line, end_line = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        return Span(
            line,
            self.column(line, node.col_offset),  # type: ignore[attr-defined]
            end_line,
            self.column(end_line, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def slice(self, span: Span) -> str:
        """The text of `span`, lines joined by `\\n`."""
        if span.line == span.end_line:
            return self.lines[span.line - 1][span.column - 1 : span.end_column - 1]
        first = self.lines[span.line - 1][span.column - 1 :]
        last = self.lines[span.end_line - 1][: span.end_column - 1]
        return "\n".join([first, *self.lines[span.line : span.end_line - 1], last])

    def text_of(self, node: ast.AST) -> str:
        return self.slice(self.span_of(node))
