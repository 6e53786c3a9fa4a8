"""The `gitlab` format: a Code Quality report, which GitLab shows in a merge request.

Source: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from perflint.finding import Finding, Impact, Problem, Report
from perflint.report import places
from perflint.report.as_json import dump
from perflint.report.fingerprint import finding_keys

if TYPE_CHECKING:
    from perflint.report import Options

#: `critical` and `blocker` are left to errors: a finding costs time, it does not break the program.
_SEVERITY = {Impact.HIGH: "major", Impact.MEDIUM: "minor", Impact.LOW: "info"}


def render(report: Report, options: Options) -> str:
    texts = places.Texts(report.texts)
    keys = finding_keys(report.findings, texts)
    items = [_finding(one, key, texts, options) for one, key in zip(report.findings, keys)]
    items += [_problem(one, options) for one in report.errors]
    if not items:
        return "[]\n"
    return "[\n" + ",\n".join(dump(item) for item in items) + "\n]\n"


def _finding(finding: Finding, key: str, texts: places.Texts, options: Options) -> dict[str, Any]:
    span, exact = texts.raw_span(finding)
    begin: dict[str, int] = {"line": span.line}
    end: dict[str, int] = {"line": span.end_line}
    if exact:
        begin["column"], end["column"] = span.column, span.end_column
    seen, also = places.observed_line(finding), places.other_places(finding)
    said = f"{places.cell_words(finding)}{finding.message}{f' Also at {also}.' if also else ''}"
    return {
        "description": f"{finding.code}: {said}{f' (observed: {seen})' if seen else ''}",
        "check_name": finding.code,
        "fingerprint": key,
        "severity": _SEVERITY[finding.impact],
        "location": {
            "path": places.from_root(finding.path, options.root),
            "positions": {"begin": begin, "end": end},
        },
    }


def _problem(problem: Problem, options: Options) -> dict[str, Any]:
    name = f"{problem.path}\0{problem.line}\0{problem.message}"
    return {
        "description": problem.message,
        "check_name": "perflint-error",
        "fingerprint": hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32],
        "severity": "critical",
        "location": {
            "path": places.from_root(problem.path, options.root) if problem.path else ".",
            "lines": {"begin": problem.line or 1},
        },
    }
