"""Where syntax stands in the text: offsets, parentheses of its own, comments, lines. Pure; edits are made here."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate

from perflint.finding import Edit, Span
from perflint.syntax.scan import Kind, Token, scan
from perflint.syntax.tree import Tree

#: The span of an edit that cannot be made. No file has a line 0, so a fix that holds one is never offered.
NOWHERE = Edit(Span(0, 0, 0, 0), "")

_BLANK = re.compile(r"(?:[ \t\f\n]|\\\n|#[^\n]*)*")
_SHOWS_ITSELF = re.compile(r"[\s)]*=(?!=)")
_INDENT = re.compile(r"[ \t\f]*")


class UnreachableError(Exception):
    """The text of a node is not where its position says, or cannot be edited alone."""


class Layout:
    """The text of one tree with `\\n` line ends, addressed by offsets in characters."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.lines = tree.source.lines
        self.code = "\n".join(self.lines)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(len(line) + 1 for line in self.lines[:-1])]

    # Positions.

    def offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column - 1

    def position(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def span(self, start: int, end: int) -> Span:
        return Span(*self.position(start), *self.position(end))

    def edit(self, start: int, end: int, text: str) -> Edit:
        """Replace `start` to `end`, with a space where a word would run into another."""
        if text and start < end:
            if _is_word(self.code[start - 1 : start]) and _opens_word(text[0]) and not _is_word(self.code[start]):
                text = f" {text}"
            if _is_word(self.code[end : end + 1]) and _is_word(text[-1]) and not _is_word(self.code[end - 1]):
                text = f"{text} "
        return Edit(self.span(start, end), text)

    def insert(self, offset: int, text: str) -> Edit:
        return Edit(self.span(offset, offset), text)

    def range(self, node: ast.AST) -> tuple[int, int]:
        """Start and end of a node. Raises UnreachableError in strings, where it cannot be found or changed alone."""
        start, end = self._plain_range(node)
        fields = [outer for outer in self.tree.expressions_around(node) if isinstance(outer, ast.FormattedValue)]
        if fields and not self._is_at(node, self.code[start:end]):
            raise UnreachableError
        for outer in fields:
            # `{x = }` prints its own text.
            if _SHOWS_ITSELF.match(self.code, self._plain_range(outer.value)[1]):
                raise UnreachableError
        return start, end

    def _plain_range(self, node: ast.AST) -> tuple[int, int]:
        span = self.tree.span(node)
        return self.offset(span.line, span.column), self.offset(span.end_line, span.end_column)

    def text(self, node: ast.AST) -> str:
        start, end = self.range(node)
        return self.code[start:end]

    def _in_string(self, node: ast.AST) -> bool:
        return any(isinstance(outer, ast.JoinedStr) for outer in self.tree.expressions_around(node))

    @staticmethod
    def _is_at(node: ast.AST, text: str) -> bool:
        # Before Python 3.12, nodes in formatted strings have guessed positions, wrong in strings of several parts.
        value = node.value if isinstance(node, ast.keyword) else node
        text = text.partition("=")[2] if isinstance(node, ast.keyword) and node.arg else text
        try:
            return ast.dump(ast.parse(f"({text}\n)", mode="eval").body) == ast.dump(value)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False

    # Lines.

    def line_start(self, offset: int) -> int:
        return self.code.rfind("\n", 0, offset) + 1

    def line_end(self, offset: int) -> int:
        """The offset of the line end at or behind `offset`."""
        end = self.code.find("\n", offset)
        return len(self.code) if end < 0 else end

    def before(self, offset: int) -> str:
        """What stands on the line before `offset`."""
        return self.code[self.line_start(offset) : offset]

    def after(self, offset: int) -> str:
        """What stands on the line from `offset` on."""
        return self.code[offset : self.line_end(offset)]

    def begins_line(self, offset: int) -> bool:
        """Whether only white space stands before `offset` on its line, and the line continues no other."""
        start = self.line_start(offset)
        return not self.code[start:offset].strip() and not self.code[:start].endswith("\\\n")

    def indent(self, offset: int) -> str:
        """The white space at the beginning of the line of `offset`."""
        match = _INDENT.match(self.code, self.line_start(offset))
        return match.group() if match else ""

    @cached_property
    def indent_unit(self) -> str:
        """What a block of this file is indented by, more than its header: by the first one that shows it."""
        for outer in ast.walk(self.tree.module):
            body = getattr(outer, "body", None)
            if not isinstance(outer, ast.stmt) or not isinstance(body, list) or not body:
                continue
            inner, own = self.offset(body[0].lineno, 1), self.offset(outer.lineno, 1)
            if body[0].lineno > outer.lineno and self.indent(inner).startswith(self.indent(own)):
                unit = self.indent(inner)[len(self.indent(own)) :]
                if unit:
                    return unit
        return "    "

    def ends_line(self, offset: int) -> bool:
        """Whether only white space or a comment stands behind `offset` on its line."""
        rest = self.after(offset).strip()
        return not rest or rest.startswith("#")

    # Tokens.

    def skip(self, offset: int) -> int:
        """The next offset at or behind `offset` that is no white space, line end or comment."""
        match = _BLANK.match(self.code, offset)
        return match.end() if match else offset

    def has_comment(self, start: int, end: int) -> bool:
        """Whether a comment begins between two offsets, neither of which is inside a token."""
        return any(token.kind is Kind.COMMENT for token in scan(self.code[start:end]))

    def _tokens_before(self, node: ast.AST) -> list[Token]:
        """What precedes `node` in its statement, without comments and line ends."""
        statement = self.tree.statement_of(node)
        start = self.range(first_of(statement))[0]
        tokens = scan(self.code[start : self.range(node)[0]])
        return [token for token in tokens if token.kind not in {Kind.COMMENT, Kind.NEWLINE}]

    def is_bracketed(self, node: ast.AST) -> bool:
        """Whether a line may end anywhere in `node` because brackets stand around it."""
        return not self._in_string(node) and sum(token.opens for token in self._tokens_before(node)) > 0

    def outer(self, node: ast.expr) -> tuple[int, int]:
        """The range of an expression with the parentheses that are its own."""
        start, end = self.range(node)
        if self._in_string(node):
            return start, end
        base = self.range(first_of(self.tree.statement_of(node)))[0]
        layers = [(start, end)]
        for token in reversed(self._tokens_before(node)):
            end = self.skip(end)
            if self.code[base + token.start : base + token.end] != "(" or self.code[end : end + 1] != ")":
                break
            end += 1
            layers.append((base + token.start, end))
        if len(layers) > 1 and self._is_only_argument(node):
            layers.pop()
        return layers[-1]

    def _is_only_argument(self, node: ast.expr) -> bool:
        parent = self.tree.parent(node)
        if isinstance(parent, ast.Call):
            return parent.func is not node and len(parent.args) + len(parent.keywords) == 1
        return isinstance(parent, ast.ClassDef) and node in parent.bases

    def is_bare_generator(self, node: ast.AST) -> bool:
        """Whether `node` is a generator whose parentheses are those of the call: `sum(x for x in y)`."""
        parent = self.tree.parent(node)
        return (
            isinstance(node, ast.GeneratorExp)
            and isinstance(parent, ast.Call)
            and node in parent.args
            and self.range(node)[1] == self.range(parent)[1]
        )


def first_of(statement: ast.stmt) -> ast.AST:
    """The statement, or its first decorator. The `@` before that stands on the same line."""
    decorators = getattr(statement, "decorator_list", None)
    return decorators[0] if decorators else statement


def _is_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _opens_word(letter: str) -> bool:
    # A word before a string reads as the string's prefix.
    return _is_word(letter) or letter in {'"', "'"}
