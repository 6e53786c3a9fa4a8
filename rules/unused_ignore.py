"""TPL001: comments that silence nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from perflint.api import (
    Applicability,
    Confidence,
    Context,
    Finding,
    Fix,
    Impact,
    Malformed,
    Nodes,
    Rule,
    SourceFile,
    Suppression,
)

from ._fixes.comments import directive, without_comment


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
                span=directive(source, comment.line, comment.column),
                message=f"This comment suppresses {named}, but there is no such finding here.",
                confidence=Confidence.HIGH,
                impact=self.impact,
                fix=Fix(
                    "Delete the comment", Applicability.SAFE, (without_comment(source, comment),), numerics="same bits"
                ),
                advice="Delete the comment.",
            )
        for wrong in malformed:
            yield Finding(
                code=self.code,
                name=self.name,
                path=source.path,
                span=directive(source, wrong.line, wrong.column),
                message=_what_is_wrong(wrong),
                confidence=Confidence.HIGH,
                impact=Impact.MEDIUM if wrong.meant else self.impact,
                advice=f"Write `{wrong.meant}`." if wrong.meant else "Write `# perflint: ignore[CODE] reason`.",
            )


def _what_is_wrong(comment: Malformed) -> str:
    if comment.meant:
        return f"In this comment {comment.message}"
    return f"This comment suppresses nothing: {comment.message}."
