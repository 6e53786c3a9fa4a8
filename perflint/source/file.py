"""One file's text: decoded, with positions that agree with what editors show."""

from __future__ import annotations

import ast
from functools import cached_property

from perflint.finding import Span


class SourceFile:
    """Text of one file. `path` is relative to the working directory, with forward slashes, as findings print it.

    `text` keeps the file's own line endings; `lines` are without them, split as Python splits source
    (`\\n`, `\\r\\n`, `\\r`; form feeds and Unicode separators do not end a line).
    """

    def __init__(self, path: str, text: str, *, encoding: str = "utf-8", bom: bool = False) -> None:
        self.path = path
        self.text = text
        self.encoding = encoding
        self.bom = bom

    @cached_property
    def lines(self) -> list[str]:
        return self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    def column(self, line: int, byte_offset: int) -> int:
        """Character column (from 1) of ast's UTF-8 byte offset in `line`."""
        text = self.lines[line - 1]
        if text.isascii():
            return byte_offset + 1
        return len(text.encode("utf-8", "surrogatepass")[:byte_offset].decode("utf-8", "replace")) + 1

    def span_of(self, node: ast.AST) -> Span:
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
