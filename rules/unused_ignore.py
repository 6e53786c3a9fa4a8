"""TPL001: comments that silence nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from perflint.api import (
    Applicability,
    Confidence,
    Context,
    Edit,
    Finding,
    Fix,
    Impact,
    Malformed,
    Nodes,
    Rule,
    SourceFile,
    Span,
    Suppression,
)


class UnusedIgnore(Rule):
    """A suppression comment that suppresses nothing.

    What it does

    Reports `# perflint: ignore[...]` comments, and single codes in them, that match no finding.

    Why is this slow?

    It is not slow. But the comment claims that the line is slow on purpose, and it would hide the next real finding
    there.

    What to do

    Delete the comment. If it names a rule that does not exist, correct the name.

    Fix safety

    Safe: only the unused comment, or the unused codes in its list, are removed. Codes of other tools stay. Same bits.

    Not reported

    - Comments for a rule that did not run on the file, for example under `--select`.
    - Comments without rule names, unless all rules ran.
    """

    code, name = "TPL001", "unused-ignore"
    impact = Impact.LOW
    listens = (Nodes(ast.Module, mentioning=("perflint",)),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        return iter(())  # what is unused is known only after all other rules have run: see `check_comments`

    def check_comments(
        self, source: SourceFile, unused: Sequence[Suppression], malformed: Sequence[Malformed]
    ) -> Iterator[Finding]:
        for comment in unused:
            named = ", ".join(comment.selectors) or "any rule"
            yield Finding(
                code=self.code,
                name=self.name,
                path=source.path,
                span=_directive(source, comment.line, comment.column),
                message=f"This comment suppresses {named}, but there is no such finding here.",
                confidence=Confidence.HIGH,
                impact=self.impact,
                fix=Fix("Delete the comment", Applicability.SAFE, (_deletion(source, comment),), numerics="same bits"),
                advice="Delete the comment.",
            )
        for wrong in malformed:
            yield Finding(
                code=self.code,
                name=self.name,
                path=source.path,
                span=_directive(source, wrong.line, wrong.column),
                message=_what_is_wrong(wrong),
                confidence=Confidence.HIGH,
                impact=Impact.MEDIUM if wrong.meant else self.impact,
                advice=f"Write `{wrong.meant}`." if wrong.meant else "Write `# perflint: ignore[CODE] reason`.",
            )


def _what_is_wrong(comment: Malformed) -> str:
    if comment.meant:
        return f"In this comment {comment.message}"
    return f"This comment suppresses nothing: {comment.message}."


def _directive(source: SourceFile, line: int, column: int) -> Span:
    """From where the directive begins to the next comment on the line, or its end."""
    text = source.lines[line - 1]
    following = text.find("#", column)
    end = len(text) if following < 0 else following
    return Span(line, column, line, column - 1 + len(text[column - 1 : end].rstrip()) + 1)


def _deletion(source: SourceFile, comment: Suppression) -> Edit:
    """The whole comment, or those words of its list that are of no use."""
    if comment.kept:
        return _shortening(source, comment)
    span = _directive(source, comment.line, comment.column)
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
