"""The `github` format: workflow commands that annotate a pull request.

Every character that could end a property or the line is escaped, and anything else that controls a terminal is shown
as an escape, so neither a path nor source text can make the runner see a second command. GitHub shows ten annotations
of a level and step, so the worst come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perflint.finding import Applicability, Finding, Fix, Impact, Problem, Report
from perflint.report import places
from perflint.report.visible import visible, visible_lines, visible_prose

if TYPE_CHECKING:
    from perflint.report import Options

# An `error` annotation reads as a failed job; a finding only wastes time, so errors are kept for `Report.errors`.
_LEVELS = {Impact.HIGH: "warning", Impact.MEDIUM: "warning", Impact.LOW: "notice"}


def render(report: Report, options: Options) -> str:
    texts = places.Texts(report.texts)
    ordered = places.worst_first(places.in_reading_order(report))
    lines = [_problem(one, options) for one in report.errors]
    lines += [_finding(one, texts, options) for one in ordered]
    return "".join(f"{line}\n" for line in lines)


def _finding(finding: Finding, texts: places.Texts, options: Options) -> str:
    span, exact = texts.raw_span(finding)
    properties: dict[str, str | int] = {
        "file": places.from_root(finding.path, options.root),
        "line": span.line,
        "endLine": span.end_line,
    }
    # GitHub refuses columns on an annotation of several lines.
    if exact and span.line == span.end_line:
        properties |= {"col": span.column, "endColumn": span.end_column}
    properties["title"] = f"{finding.code} {finding.name}"
    parts = [places.cell_words(finding) + visible_prose(finding.message)]
    parts += places.explained(finding)
    if finding.fix is not None:
        parts.append(f"fix: {_fix(finding.fix)}")
    return _command(_LEVELS[finding.impact], properties, "\n".join(parts))


def _fix(fix: Fix) -> str:
    reason = f", {visible_prose(fix.reason)}" if fix.reason and fix.applicability is not Applicability.SAFE else ""
    return f"{visible_prose(fix.title)} ({fix.applicability.label}{reason})"


def _problem(problem: Problem, options: Options) -> str:
    properties: dict[str, str | int] = {}
    if problem.path:
        properties["file"] = places.from_root(problem.path, options.root)
    if problem.line is not None:
        properties["line"] = problem.line
        if problem.column is not None:
            properties["col"] = problem.column
    properties["title"] = "perflint"
    return _command("error", properties, visible_prose(problem.message))


def _command(level: str, properties: dict[str, str | int], message: str) -> str:
    listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{level} {listed}::{_data(visible_lines(message))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(visible(text)).replace(":", "%3A").replace(",", "%2C")
