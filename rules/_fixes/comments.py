"""Suppression comments: where each stands, and the edit that takes it or some of its words away."""

from __future__ import annotations

import re

from perflint.api import Edit, SourceFile, Span, Suppression


def directive(source: SourceFile, line: int, column: int) -> Span:
    """From where the directive begins to the next comment on the line, or its end."""
    text = source.lines[line - 1]
    following = text.find("#", column)
    end = len(text) if following < 0 else following
    return Span(line, column, line, column - 1 + len(text[column - 1 : end].rstrip()) + 1)


def without_comment(source: SourceFile, comment: Suppression) -> Edit:
    """The whole comment, or those words of its list that are of no use."""
    if comment.kept:
        return _shortening(source, comment)
    span = directive(source, comment.line, comment.column)
    text = source.lines[comment.line - 1]
    before, after = text[: span.column - 1], text[span.end_column - 1 :]
    if after.strip():
        return Edit(Span(span.line, span.column, span.line, span.end_column + len(after) - len(after.lstrip())), "")
    if before.strip():
        return Edit(Span(span.line, len(before.rstrip()) + 1, span.line, len(text) + 1), "")
    if comment.line < len(source.lines):
        return Edit(Span(span.line, 1, span.line + 1, 1), "")
    return Edit(Span(span.line, 1, span.line, len(text) + 1), "")


def _shortening(source: SourceFile, comment: Suppression) -> Edit:
    first, end = comment.listed
    idle = {word.lower() for word in comment.selectors}
    listed = re.split(r"[\s,]+", source.lines[comment.line - 1][first - 1 : end - 1].strip())
    kept = ", ".join(word for word in listed if word.lower() not in idle)
    return Edit(Span(comment.line, first, comment.line, end), kept)
