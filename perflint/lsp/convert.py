"""Findings, fixes and rule pages in the protocol's words. Columns are told in the units that were agreed upon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.uris import from_fs_path

from perflint.finding import Applicability, Edit, Finding, Fix, Hop, Impact, Problem, Span
from perflint.report.places import observed_line, why_hot
from perflint.rule_api.page import markdown
from perflint.rule_api.rule import Rule
from perflint.syntax.file import NEWLINE, SourceFile

SOURCE = "perflint"
#: All safe fixes of a file; editors can be told to make them on save.
FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.{SOURCE}"
_SEVERITIES = {
    Impact.HIGH: types.DiagnosticSeverity.Warning,
    Impact.MEDIUM: types.DiagnosticSeverity.Warning,
    Impact.LOW: types.DiagnosticSeverity.Information,
}


@dataclass(frozen=True, slots=True)
class Units:
    """Columns of the source, in characters from 1, and the client's, in code units from 0."""

    codec: Any

    def range(self, source: SourceFile, span: Span) -> types.Range:
        return types.Range(
            self._position(source, span.line, span.column), self._position(source, span.end_line, span.end_column)
        )

    def _position(self, source: SourceFile, line: int, column: int) -> types.Position:
        text = source.lines[line - 1] if line <= len(source.lines) else ""
        return types.Position(line - 1, self.codec.client_num_units(text[: column - 1]))


def changed(text: str, change: Any, codec: Any) -> str:
    """`text` after a change of the client, of a part of it or of all.

    Not left to pygls, to which a form feed or a Unicode separator ends a line as well.
    """
    if not isinstance(change, types.TextDocumentContentChangePartial):
        return str(change.text)
    start, end = (_offset(text, position, codec) for position in (change.range.start, change.range.end))
    return f"{text[:start]}{change.text}{text[max(start, end) :]}"


def _offset(text: str, position: types.Position, codec: Any) -> int:
    """Of a position, which beyond the end of a line means its end, and beyond that of the text, the text's."""
    ends = [*NEWLINE.finditer(text)]
    if position.line > len(ends):
        return len(text)
    start = ends[position.line - 1].end() if position.line else 0
    end = ends[position.line].start() if position.line < len(ends) else len(text)
    units, at = 0, start
    while at < end and units < position.character:
        units += codec.client_num_units(text[at])
        at += 1
    return at


def diagnostic(finding: Finding, source: SourceFile, units: Units) -> types.Diagnostic:
    """A finding as an editor shows it, with why its line is hot and what to do."""
    parts = [finding.message]
    if seen := observed_line(finding):
        parts.append(f"Observed: {seen}")
    if why := why_hot(finding):
        parts.append(f"Why hot: {why}")
    if finding.advice:
        parts.append(f"What to do: {finding.advice}")
    return types.Diagnostic(
        range=units.range(source, finding.span),
        message="\n".join(parts),
        severity=_SEVERITIES[finding.impact],
        code=finding.code,
        source=SOURCE,
        # A comment that silences nothing is what editors show faded.
        tags=[types.DiagnosticTag.Unnecessary] if finding.code == "TPL001" else None,
        related_information=[_related(hop) for hop in (*finding.route, *finding.related)] or None,
    )


def _related(hop: Hop) -> types.DiagnosticRelatedInformation:
    start = types.Position(max(hop.line - 1, 0), 0)
    uri = from_fs_path(str(Path(hop.path).absolute())) or ""
    return types.DiagnosticRelatedInformation(types.Location(uri, types.Range(start, start)), hop.text or "here")


def problem(one: Problem, source: SourceFile, units: Units) -> types.Diagnostic:
    """What keeps a file from being checked is for the eye only: editors say better what is wrong with its syntax."""
    line = min(max(one.line or 1, 1), len(source.lines))
    span = Span(line, 1, line, len(source.lines[line - 1]) + 1)
    return types.Diagnostic(
        units.range(source, span), f"not checked: {one.message}", types.DiagnosticSeverity.Information, source=SOURCE
    )


def text_edits(edits: Sequence[Edit], source: SourceFile, units: Units) -> list[types.TextEdit]:
    return [types.TextEdit(units.range(source, edit.span), edit.text.replace("\n", source.newline)) for edit in edits]


def fix_title(finding: Finding, fix: Fix) -> str:
    unsafe = fix.applicability is Applicability.UNSAFE
    reason = f" (unsafe: {fix.reason})" if unsafe and fix.reason else " (unsafe)" if unsafe else ""
    return f"{finding.code}: {fix.title}{reason}"


def hover(finding: Finding, rule: type[Rule] | None) -> str:
    """Markdown: the finding, then the page of its rule."""
    rating = f"{finding.impact.label} impact, {finding.confidence.label} confidence"
    parts = [f"**{finding.code} {finding.name}** ({rating})", finding.message]
    if seen := observed_line(finding):
        parts.append(f"*Observed:* {seen}")
    if why := why_hot(finding):
        parts.append(f"*Why hot:* {why}")
    if finding.advice:
        parts.append(f"*What to do:* {finding.advice}")
    if rule is not None:
        parts += ["---", markdown(rule)]
    return "\n\n".join(parts)
