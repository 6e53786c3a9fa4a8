"""The `junit` format: XML that CI servers read as test results. A suite for each file, a failure for each finding."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from perflint.finding import Finding, Problem, Report
from perflint.report import places
from perflint.report.visible import visible, visible_lines, visible_prose

if TYPE_CHECKING:
    from perflint.report import Options


def render(report: Report, options: Options) -> str:
    findings: dict[str, list[Finding]] = {}
    for one in report.findings:
        findings.setdefault(one.path, []).append(one)
    problems: dict[str, list[Problem]] = {}
    for problem in report.errors:
        problems.setdefault(problem.path, []).append(problem)
    suites = [
        _suite(path, findings.get(path, []), problems.get(path, []), options)
        for path in dict.fromkeys([*findings, *problems])
    ]
    counts = _counts(len(report.findings) + len(report.errors) or 1, len(report.findings), len(report.errors))
    body = suites or [f'  <testsuite name="perflint" {counts}>\n    <testcase name="perflint"/>\n  </testsuite>']
    head = f'<testsuites name="perflint" {counts}>'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *body, "</testsuites>"]) + "\n"


def _counts(tests: int, failures: int, errors: int) -> str:
    return f'tests="{tests}" failures="{failures}" errors="{errors}"'


def _suite(path: str, findings: list[Finding], problems: list[Problem], options: Options) -> str:
    file = places.from_root(path, options.root) if path else "perflint"
    counts = _counts(len(findings) + len(problems), len(findings), len(problems))
    cases = [_failure(one, file) for one in findings] + [_error(one, file) for one in problems]
    return "\n".join([f"  <testsuite name={_quoted(file)} {counts}>", *cases, "  </testsuite>"])


def _failure(finding: Finding, file: str) -> str:
    parts = [visible_prose(finding.message)]
    parts += places.explained(finding)
    where = places.place(finding)
    name = f"{finding.code} {finding.name} at {where.removeprefix(finding.path).lstrip(':')}"
    message = f"{where}: {finding.message}"
    return _case(name, file, finding.span.line, "failure", message, "\n".join(parts), finding.impact.label)


def _error(problem: Problem, file: str) -> str:
    where = places.problem_place(problem)
    name = f"error at {where}" if where else "error"
    return _case(name, file, problem.line or 1, "error", problem.message, visible_prose(problem.message), "error")


def _case(name: str, file: str, line: int, element: str, message: str, text: str, kind: str) -> str:
    attributes = f'name={_quoted(name)} classname={_quoted(file)} file={_quoted(file)} line="{line}"'
    said = f"message={_quoted(message)} type={_quoted(kind)}"
    inner = f"<{element} {said}>{escape(visible_lines(text))}</{element}>"
    return f"    <testcase {attributes}>\n      {inner}\n    </testcase>"


def _quoted(text: str) -> str:
    """As an attribute. XML has no way to write most control characters, so they are shown as Python escapes."""
    return quoteattr(visible(text))
