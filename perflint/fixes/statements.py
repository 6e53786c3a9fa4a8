"""Whole statements: deleted, swapped, and new ones put beside them."""

from __future__ import annotations

import ast
import re

from perflint.finding import Edit
from perflint.fixes.layout import NOWHERE, Layout, first_of
from perflint.syntax.tree import FunctionNode

_COMPOUND = re.compile(r"(?:if|for|while|with|try|def|class|async|match)\b|@")
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class Statements:
    """Whole statements of one file, with the comments and blank lines that belong to them."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def extent(self, statement: ast.stmt) -> tuple[int, int]:
        """From the first decorator's `@` to the end."""
        layout = self.layout
        start, end = layout.range(statement)
        first = first_of(statement)
        if first is not statement:
            start = layout.code.rfind("@", 0, layout.range(first)[0])
        return start, end

    def block_of(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements that `statement` stands among. A top-level one may have no parent link yet."""
        parent = self.layout.tree.parent(statement) or self.layout.tree.module
        for name in _BLOCKS:
            block = getattr(parent, name, None)
            if isinstance(block, list) and statement in block:
                return block
        return [statement]

    def stands_alone(self, statement: ast.stmt) -> bool:
        """Whether no other statement, nor the header of its block, shares its lines."""
        start, end = self.extent(statement)
        rest = self.layout.after(end).strip()
        return self.layout.begins_line(start) and (not rest or rest[0] == "#" or rest == ";" or rest[:2] == "; #")

    def is_elif(self, statement: ast.stmt) -> bool:
        return isinstance(statement, ast.If) and self.layout.code.startswith("elif", self.layout.range(statement)[0])

    def delete(self, statement: ast.stmt) -> Edit:
        """With its lines and the comment behind it; a block that would be empty keeps `pass`."""
        layout = self.layout
        block = self.block_of(statement)
        start, end = self.extent(statement)
        if len(block) == 1 and not self._is_top(statement) and not self.is_elif(statement):
            return layout.edit(start, end, "pass")
        if self.stands_alone(statement):
            return self._delete_lines(start, end)
        index = block.index(statement)
        following = block[index + 1] if index + 1 < len(block) else None
        if following is not None and layout.code[layout.skip(end)] == ";":
            begin = self.extent(following)[0]
            if "\n" not in layout.code[end:begin].replace("\\\n", ""):
                return layout.edit(start, begin, "")
        previous = self.extent(block[index - 1])[1] if index else start
        if layout.begins_line(start):
            return layout.edit(start, end, "pass")  # only a `;` and a line end are left: too odd to tidy up
        return layout.edit(previous, end, "")

    def _delete_lines(self, start: int, end: int) -> Edit:
        layout = self.layout
        begin, stop = layout.line_start(start), layout.line_end(end)
        if stop < len(layout.code):
            return layout.edit(begin, self._without_gap(begin, stop + 1), "")
        # The last line has no line end; the one before it is not given one either.
        return layout.edit(max(begin - 1, 0), stop, "")

    def _without_gap(self, begin: int, stop: int) -> int:
        """The end of what goes with lines from `begin` to `stop`: not the blank lines above and those below both stay,
        and none below the header of a block.
        """
        layout = self.layout
        above, line = 0, begin
        while line > 0 and not layout.code[layout.line_start(line - 1) : line].strip():
            above, line = above + 1, layout.line_start(line - 1)
        header = line > 0 and layout.code[layout.line_start(line - 1) : line].rstrip().endswith(":")
        while (above or header) and stop < len(layout.code) and not layout.after(stop).strip():
            above, stop = above - 1, min(layout.line_end(stop) + 1, len(layout.code))
            if above == 0 and not header:
                break
        return stop

    def loses_comment(self, statement: ast.stmt) -> bool:
        """Whether a comment goes when the statement is deleted."""
        start, end = self.extent(statement)
        if self.stands_alone(statement) and (len(self.block_of(statement)) > 1 or self._is_top(statement)):
            end = self.layout.line_end(end)
        return self.layout.has_comment(start, end)

    def _is_top(self, statement: ast.stmt) -> bool:
        return self.layout.tree.parent(statement) in {None, self.layout.tree.module}

    def swap(self, first: ast.stmt, second: ast.stmt) -> tuple[Edit, ...]:
        """Exchange two statements of one block, each with the comments behind it.

        A comment above the second goes with it; then the one above the first goes with the first as well, else it
        is taken to speak of both and stays.
        """
        layout = self.layout
        if self.is_elif(first) or self.is_elif(second):
            return (NOWHERE,)
        if self.stands_alone(first) and self.stands_alone(second):
            return self._swap_lines(first, second)
        if hasattr(first, "body") or hasattr(second, "body"):
            return (NOWHERE,)  # a block fits on no line that others share
        one, two = self.extent(first), self.extent(second)
        return (layout.edit(*one, layout.code[slice(*two)]), layout.edit(*two, layout.code[slice(*one)]))

    def _swap_lines(self, first: ast.stmt, second: ast.stmt) -> tuple[Edit, ...]:
        layout = self.layout
        above, mine = self._comments_above(second), self._comments_above(first)
        one, two = self.extent(first), self.extent(second)
        ones = (layout.line_start(one[0]) if above is None or mine is None else mine, layout.line_end(one[1]))
        twos = (layout.line_start(two[0]) if above is None else above, layout.line_end(two[1]))
        return (layout.edit(*ones, layout.code[slice(*twos)]), layout.edit(*twos, layout.code[slice(*ones)]))

    def _comments_above(self, statement: ast.stmt) -> int | None:
        """Where the comment lines right above a statement begin."""
        layout, found = self.layout, None
        block = self.block_of(statement)
        index = block.index(statement)
        # A line of a string may look like a comment; the statements above end before this.
        stop = self.extent(block[index - 1])[1] if index else 0
        line = layout.line_start(self.extent(statement)[0])
        while line > stop:
            line = layout.line_start(line - 1)
            if line < stop or not layout.after(line).strip().startswith("#"):
                break
            found = line
        return found

    def insert_before(self, statement: ast.stmt, text: str) -> Edit:
        """On lines of its own above the statement and its decorators; on the same line where others share it."""
        layout = self.layout
        start, _ = self.extent(statement)
        if self.is_elif(statement) or _breaks_text(text):
            return NOWHERE
        if text.endswith(":") and not self.stands_alone(statement):
            return NOWHERE  # what stands behind it on its line would fall under the header too
        if not layout.begins_line(start):
            return NOWHERE if "\n" in text or _COMPOUND.match(text) else layout.insert(start, f"{text}; ")
        return layout.insert(layout.line_start(start), _indented(text, layout.indent(start)))

    def insert_after(self, statement: ast.stmt, text: str) -> Edit:
        """On lines of its own below the statement and the comment behind it."""
        layout = self.layout
        start, end = self.extent(statement)
        if self.is_elif(statement) or _breaks_text(text):
            return NOWHERE
        if not self.stands_alone(statement):
            return NOWHERE if "\n" in text or _COMPOUND.match(text) else layout.insert(end, f"; {text}")
        stop = layout.line_end(end)
        lines = _indented(text, layout.indent(start))
        if stop == len(layout.code):
            return layout.insert(stop, f"\n{lines[:-1]}")
        return layout.insert(stop + 1, lines)

    def decorate(self, function: FunctionNode, decorator: str) -> Edit:
        """Directly above the `def`, below the decorators that are there."""
        start, _ = self.layout.range(function)
        return self.layout.insert(self.layout.line_start(start), _indented(decorator, self.layout.indent(start)))


def _breaks_text(text: str) -> bool:
    """Whether a string within `text` ends on another line than it begins: an indentation would become part of it."""
    if "\n" not in text:
        return False
    try:
        parts = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return '"""' in text or "'''" in text
    strings = [part for part in parts if isinstance(part, (ast.Constant, ast.JoinedStr))]
    return any(part.lineno != part.end_lineno for part in strings)


def _indented(text: str, indent: str) -> str:
    return "".join(f"{indent}{line}\n" if line else "\n" for line in text.split("\n"))
