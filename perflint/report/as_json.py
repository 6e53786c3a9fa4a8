"""The `json` format: exactly one object, the contract that other tools read. One finding a line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from perflint.finding import Finding, Fix, Hop, Observed, ObservedRun, Problem, Report, Span, Verdict
from perflint.report.counts import by_rule
from perflint.system.patterns import pattern

if TYPE_CHECKING:
    from perflint.report import Options

_SURROGATE = pattern("[\ud800-\udfff]")


def render(report: Report, options: Options) -> str:
    if options.statistics:
        return _statistics(report, options)
    findings = _array([finding_object(one) for one in report.findings])
    errors = _array([problem_object(one) for one in report.errors])
    version = dump(options.version)
    observed = "" if report.observation is None else f', "observation": {dump(_run(report.observation))}'
    start = f'{{"version": {version}, "findings": {findings}, "errors": {errors}'
    return f'{start}, "files": {report.files}{observed}}}\n'


def _statistics(report: Report, options: Options) -> str:
    """The same object with counts by rule in the place of the findings, the most frequent first."""
    rules = [
        {
            "code": one.code,
            "name": one.name,
            "count": one.count,
            "impact": one.impact.label,
            "safe_fixes": one.safe,
            "unsafe_fixes": one.unsafe,
        }
        for one in by_rule(report)
    ]
    errors = _array([problem_object(one) for one in report.errors])
    version, total = dump(options.version), len(report.findings)
    return (
        f'{{"version": {version}, "statistics": {_array(rules)}, "total": {total}, "errors": {errors}, '
        f'"files": {report.files}}}\n'
    )


def _array(items: list[dict[str, Any]]) -> str:
    """One item a line, so that a diff or `grep` shows single findings."""
    if not items:
        return "[]"
    return "[\n" + ",\n".join(dump(item) for item in items) + "\n]"


def dump(value: object) -> str:
    """One line of JSON, in ASCII only, so that it is the same in any encoding.

    A lone surrogate, which a path of undecodable bytes is made of, is no Unicode and refused by many readers even as
    an escape: it becomes the six letters of that escape.
    """
    dumped = json.dumps(value, ensure_ascii=True)
    return json.dumps(_unicode(value), ensure_ascii=True) if "\\ud" in dumped else dumped


def _unicode(value: object) -> object:
    if isinstance(value, str):
        return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", value)
    if isinstance(value, dict):
        return {key: _unicode(item) for key, item in value.items()}
    return [_unicode(item) for item in value] if isinstance(value, list) else value


def finding_object(finding: Finding) -> dict[str, Any]:
    """A finding as tools read it; the published schema describes it."""
    return {
        "code": finding.code,
        "name": finding.name,
        "path": finding.path,
        **_span(finding.span),
        "message": finding.message,
        "confidence": finding.confidence.label,
        "impact": finding.impact.label,
        "heat": finding.heat.label,
        "part": finding.part.value,
        "why_hot": [_hop(hop) for hop in finding.route],
        "fix": None if finding.fix is None else _fix(finding.fix),
        "advice": finding.advice,
        "related": [_hop(hop) for hop in finding.related],
        **_cell(finding.cell),
        **({} if finding.observed is None else {"observed": observed_object(finding.observed)}),
    }


def observed_object(observed: Observed) -> dict[str, Any]:
    """What an observed run showed; the figures are null where the finding was not confirmed."""
    is_confirmed = observed.verdict is Verdict.CONFIRMED
    return {
        "verdict": observed.verdict.value,
        "per_step": round(observed.per_step, 6) if is_confirmed else None,
        "bytes": round(observed.moved, 3) if is_confirmed else None,
        "modelled_ms": None if observed.gain_ms is None else round(observed.gain_ms, 6),
        "modelled_share": None if observed.share is None else round(observed.share, 6),
        "hidden": observed.hidden,
        "hardware": observed.hardware or None,
        "by_rule": observed.by_rule,
    }


def _run(observation: ObservedRun) -> dict[str, Any]:
    return {
        "device": observation.device,
        "hardware": observation.hardware,
        "steps": observation.steps,
        "waits": round(observation.waits, 6),
        "launches": round(observation.launches, 6),
        "modelled_ms": observation.step_ms,
        "without_waits_ms": observation.without_waits_ms,
        "bound_by": observation.bound_by,
        "changed_functions": observation.changed,
    }


def _span(span: Span) -> dict[str, int]:
    return {"line": span.line, "column": span.column, "end_line": span.end_line, "end_column": span.end_column}


def _hop(hop: Hop) -> dict[str, Any]:
    code = {"code": hop.code} if hop.code else {}
    return {"path": hop.path, "line": hop.line, "text": hop.text, **_cell(hop.cell), **code}


def _cell(cell: int | None) -> dict[str, int]:
    return {} if cell is None else {"cell": cell}


def _fix(fix: Fix) -> dict[str, Any]:
    edits = [{**_span(edit.span), "text": edit.text, **_cell(edit.cell)} for edit in fix.edits]
    return {"title": fix.title, "applicability": fix.applicability.label, "reason": fix.reason, "edits": edits}


def problem_object(problem: Problem) -> dict[str, Any]:
    """An error as tools read it."""
    return {"path": problem.path, "line": problem.line, "column": problem.column, "message": problem.message}
