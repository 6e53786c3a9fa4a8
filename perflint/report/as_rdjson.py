"""The `rdjson` format: Reviewdog Diagnostic Format, which reviewdog posts on GitHub, GitLab, Gerrit and others.

Source: https://github.com/reviewdog/reviewdog/tree/master/proto/rdf. Columns count UTF-8 bytes from 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perflint.finding import Finding, Impact, Problem, Report, Span
from perflint.report import places
from perflint.report.as_json import dump

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perflint.report import Options

_SEVERITY = {Impact.HIGH: "WARNING", Impact.MEDIUM: "WARNING", Impact.LOW: "INFO"}


def render(report: Report, options: Options) -> str:
    texts = places.Texts(report.texts)
    items = [_finding(one, texts, options) for one in report.findings]
    items += [_problem(one, options) for one in report.errors]
    listed = "[\n" + ",\n".join(dump(item) for item in items) + "\n]" if items else "[]"
    return f'{{"source": {{"name": "perflint"}}, "severity": "WARNING", "diagnostics": {listed}}}\n'


def _finding(finding: Finding, texts: places.Texts, options: Options) -> dict[str, Any]:
    span, exact = texts.raw_span(finding)
    lines = texts.lines(finding.path) if exact else ()
    seen, also = places.observed_line(finding), places.related_words(finding)
    said = [
        places.cell_words(finding) + finding.message,
        f"Observed: {seen}" if seen else "",
        f"See also: {also}" if also else "",
        finding.advice,
    ]
    message = "\n".join(part for part in said if part)
    item: dict[str, Any] = {
        "message": message,
        "location": {"path": places.from_root(finding.path, options.root), "range": _range(span, lines)},
        "severity": _SEVERITY[finding.impact],
        "code": {"value": finding.code},
    }
    # A reader accepts suggestions one by one, and some edits of a fix are wrong without the others.
    if exact and finding.fix is not None and len(finding.fix.edits) == 1:
        edit = finding.fix.edits[0]
        item["suggestions"] = [{"range": _range(edit.span, lines), "text": edit.text}]
    return item


def _range(span: Span, lines: Sequence[str]) -> dict[str, Any]:
    """`lines` is empty where columns are not known."""
    if not lines:
        return {"start": {"line": span.line}, "end": {"line": span.end_line}}
    return {
        "start": {"line": span.line, "column": _byte_column(lines, span.line, span.column)},
        "end": {"line": span.end_line, "column": _byte_column(lines, span.end_line, span.end_column)},
    }


def _byte_column(lines: Sequence[str], line: int, column: int) -> int:
    before = lines[line - 1][: column - 1] if line <= len(lines) else ""
    return column + len(before.encode("utf-8", "surrogatepass")) - len(before)


def _problem(problem: Problem, options: Options) -> dict[str, Any]:
    location: dict[str, Any] = {"path": places.from_root(problem.path, options.root) if problem.path else "."}
    if problem.line is not None:
        location["range"] = {"start": {"line": problem.line}}
    return {"message": problem.message, "location": location, "severity": "ERROR", "code": {"value": "error"}}
