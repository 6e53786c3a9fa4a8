"""Helpers of these tests: a file's codemods, nodes found by their text, and edits put into the text."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from perflint.finding import Edit
from perflint.fixes.codemods import Codemods
from perflint.syntax.file import SourceFile
from perflint.syntax.parse import parse
from perflint.syntax.tree import Tree


class Editing:
    """One text under test."""

    def __init__(self, text: str) -> None:
        self.source = SourceFile("sample.py", text)
        self.tree = Tree(self.source, parse(self.source))
        self.codemods = Codemods(self.tree)

    def call(self, callee: str = "f") -> ast.Call:
        """The first call of `callee`."""
        for node in ast.walk(self.tree.module):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == callee:
                return node
        raise LookupError(callee)

    def expr(self, text: str) -> ast.expr:
        """The first expression that unparses to `text`."""
        for node in ast.walk(self.tree.module):
            if isinstance(node, ast.expr) and ast.unparse(node) == text:
                return node
        raise LookupError(text)

    def statement(self, text: str) -> ast.stmt:
        """The first statement whose first line unparses to `text`."""
        for node in ast.walk(self.tree.module):
            if isinstance(node, ast.stmt) and ast.unparse(node).split("\n")[0] == text:
                return node
        raise LookupError(text)

    def function(self, name: str) -> ast.FunctionDef:
        for node in ast.walk(self.tree.module):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return node
        raise LookupError(name)

    def apply(self, *edits: Edit | Iterable[Edit]) -> str:
        """The text with edits written into it, which must parse. For texts with `\\n` line ends."""
        flat = [one for edit in edits for one in ([edit] if isinstance(edit, Edit) else edit)]
        text = "\n".join(self.source.lines)
        for edit in sorted(flat, key=lambda edit: edit.span, reverse=True):
            begin = self._offset(edit.span.line, edit.span.column)
            end = self._offset(edit.span.end_line, edit.span.end_column)
            text = text[:begin] + edit.text + text[end:]
        ast.parse(text)
        return text

    def _offset(self, line: int, column: int) -> int:
        assert line >= 1, "the edit was refused"
        return sum(len(text) + 1 for text in self.source.lines[: line - 1]) + column - 1
