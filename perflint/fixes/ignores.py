"""Comments that silence findings, written where they are read: behind a statement, or alone above it. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from perflint.errors import SourceError
from perflint.finding import Applicability, Edit, Finding, Fix, Span
from perflint.syntax.file import SourceFile
from perflint.syntax.parse import parse
from perflint.syntax.suppressions import Suppression, Suppressions

#: Longer lines than this are not made: the comment goes above.
_LONGEST = 120


def ignore_fixes(source: SourceFile, findings: Iterable[Finding], reason: str = "") -> list[Fix]:
    """Fixes that silence `findings` of `source` with comments, one for each statement.

    Raises SourceError when the text does not parse.
    """
    statements = [node for node in ast.walk(parse(source)) if isinstance(node, ast.stmt)]
    codes: dict[tuple[int, int], set[str]] = {}
    for finding in findings:
        codes.setdefault(_lines(statements, finding.span), set()).add(finding.code)
    there = Suppressions.read(source).each
    return [
        Fix(
            f"Suppress {', '.join(sorted(named))} here",
            Applicability.SAFE,
            (_edit(source, there, lines, named, reason),),
        )
        for lines, named in sorted(codes.items())
    ]


def _lines(statements: Iterable[ast.stmt], span: Span) -> tuple[int, int]:
    """First and last line of the innermost statement at `span`; of a compound statement, those of its header."""
    around = [one for one in statements if _first(one) <= span.line <= (one.end_lineno or one.lineno)]
    if not around:
        raise SourceError("no statement is there", span.line)
    inner = max(around, key=lambda one: (_first(one), one.col_offset, -(one.end_lineno or 0)))
    last = inner.end_lineno or inner.lineno
    body = getattr(inner, "body", None)
    if isinstance(body, list) and body:
        last = max(inner.lineno, _first(body[0]) - 1)
    return _first(inner), max(last, span.line)


def _first(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])


def _edit(
    source: SourceFile, there: Iterable[Suppression], lines: tuple[int, int], codes: set[str], reason: str
) -> Edit:
    first, last = lines
    for one in there:
        if first <= one.line <= last and one.selectors and not one.whole_file and not one.is_noqa:
            closing = source.lines[one.line - 1].find("]", one.column)
            if closing > 0:
                return _insertion(one.line, closing + 1, f", {', '.join(sorted(codes))}")
    comment = f"# perflint: ignore[{', '.join(sorted(codes))}]{' ' if reason else ''}{' '.join(reason.split())}"
    text = source.lines[first - 1]
    if first == last and len(text.rstrip()) + len(comment) + 2 <= _LONGEST and not text.endswith("\\"):
        return Edit(Span(first, len(text.rstrip()) + 1, first, len(text) + 1), f"  {comment}")
    indent = text[: len(text) - len(text.lstrip())]
    return _insertion(first, 1, f"{indent}{comment}\n")


def _insertion(line: int, column: int, text: str) -> Edit:
    return Edit(Span(line, column, line, column), text)
