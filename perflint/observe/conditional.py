"""Which parts of a file may be left out although their line runs: of them, coverage by lines says nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.finding import Span
from perflint.observe.functions import parsed


def conditional_parts(text: str) -> tuple[Span, ...]:
    """Operands after the first of `and` and `or`, arms of `a if b else c`, messages of `assert`, bodies of lambdas, and
    bodies of statements, each where it begins on a line of what decides about it. Empty if the file does not parse."""
    tree = parsed(text)
    if tree is None:
        return ()
    lines = text.splitlines()
    return tuple(
        _span(part, lines)
        for node in ast.walk(tree)
        for decides, part in _decided(node)
        if part.lineno <= (decides.end_lineno or decides.lineno)
    )


def innermost_part(parts: tuple[Span, ...], span: Span) -> Span | None:
    """The smallest of the parts that has the whole of `span` in it."""
    return min((one for one in parts if holds(one, span)), key=_extent, default=None)


def holds(part: Span, span: Span) -> bool:
    """Whether `span` lies in `part`."""
    begins = (part.line, part.column) <= (span.line, span.column)
    return begins and (span.end_line, span.end_column) <= (part.end_line, part.end_column)


def _extent(span: Span) -> tuple[int, int]:
    return span.end_line - span.line, span.end_column - span.column


def _decided(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, ast.expr | ast.stmt]]:
    """Pairs of what decides and what it decides about."""
    if isinstance(node, ast.BoolOp):
        yield from ((before, value) for before, value in zip(node.values, node.values[1:]))
    elif isinstance(node, ast.IfExp):
        # The first arm stands before the test, on its line or above it.
        yield node, node.body
        yield node.test, node.orelse
    elif isinstance(node, ast.Assert) and node.msg is not None:
        yield node.test, node.msg
    elif isinstance(node, ast.Lambda):
        yield node, node.body
    elif isinstance(node, (ast.If, ast.While)):
        yield from ((node.test, statement) for statement in node.body)
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield from ((node.iter, statement) for statement in node.body)


def _span(node: ast.expr | ast.stmt, lines: list[str]) -> Span:
    end_line = node.end_lineno or node.lineno
    return Span(
        node.lineno,
        _column(lines[node.lineno - 1], node.col_offset),
        end_line,
        _column(lines[end_line - 1], node.end_col_offset or 0),
    )


def _column(line: str, offset: int) -> int:
    """Columns count characters from 1, the parser counts bytes of UTF-8 from 0."""
    return 1 + (offset if line.isascii() else len(line.encode()[:offset].decode("utf-8", "replace")))
