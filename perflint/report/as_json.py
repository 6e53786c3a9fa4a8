"""The `json` format: exactly one object, the contract that other tools read. One finding a line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from perflint.finding import Finding, Fix, Hop, Problem, Report, Span
from perflint.report import places

if TYPE_CHECKING:
    from perflint.report import Options


def render(report: Report, options: Options) -> str:
    findings = _array([_finding(one) for one in places.in_reading_order(report)])
    errors = _array([_problem(one) for one in report.errors])
    version = _dump(options.version)
    return f'{{"version": {version}, "findings": {findings}, "errors": {errors}, "files": {report.files}}}\n'


def _array(items: list[dict[str, Any]]) -> str:
    """One item a line, so that a diff or `grep` shows single findings."""
    if not items:
        return "[]"
    return "[\n" + ",\n".join(_dump(item) for item in items) + "\n]"


def _dump(value: object) -> str:
    # ASCII only: a lone surrogate from a path or from source is then still valid JSON, in any encoding.
    return json.dumps(value, ensure_ascii=True)


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "name": finding.name,
        "path": finding.path,
        **_span(finding.span),
        "message": finding.message,
        "confidence": finding.confidence.label,
        "impact": finding.impact.label,
        "heat": finding.heat.label,
        "why_hot": [_hop(hop) for hop in finding.route],
        "fix": None if finding.fix is None else _fix(finding.fix),
        "advice": finding.advice,
        "related": [_hop(hop) for hop in finding.related],
        **_cell(finding.cell),
    }


def _span(span: Span) -> dict[str, int]:
    return {"line": span.line, "column": span.column, "end_line": span.end_line, "end_column": span.end_column}


def _hop(hop: Hop) -> dict[str, Any]:
    return {"path": hop.path, "line": hop.line, "text": hop.text, **_cell(hop.cell)}


def _cell(cell: int | None) -> dict[str, int]:
    return {} if cell is None else {"cell": cell}


def _fix(fix: Fix) -> dict[str, Any]:
    edits = [{**_span(edit.span), "text": edit.text, **_cell(edit.cell)} for edit in fix.edits]
    return {"title": fix.title, "applicability": fix.applicability.label, "edits": edits}


def _problem(problem: Problem) -> dict[str, Any]:
    return {"path": problem.path, "line": problem.line, "column": problem.column, "message": problem.message}
