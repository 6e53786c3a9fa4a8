"""Reports as JSON and back, for the cache. Anything that does not read exactly is a ValueError, never half a report."""

from __future__ import annotations

from typing import Any

from perflint.finding import (
    Applicability,
    Confidence,
    Edit,
    Finding,
    Fix,
    Heat,
    Hop,
    Impact,
    Paid,
    Part,
    Problem,
    Report,
    Silenced,
    Span,
)


def report_to_json(report: Report) -> dict[str, Any]:
    """Everything but the texts, which are read again from the files."""
    return {
        "findings": [_finding_to_json(finding) for finding in report.findings],
        "silenced": [[_finding_to_json(one.finding), one.line, one.reason] for one in report.silenced],
        "errors": [[one.path, one.message, one.line, one.column, one.detail] for one in report.errors],
        "files": report.files,
        "paths": sorted(report.texts),
    }


def report_from_json(data: Any, texts: dict[str, str]) -> Report:
    """Raises ValueError when `data` is not what `report_to_json` writes."""
    try:
        return Report(
            findings=tuple(_finding_from_json(item) for item in data["findings"]),
            errors=tuple(Problem(*item) for item in data["errors"]),
            files=int(data["files"]),
            texts=texts,
            silenced=tuple(Silenced(_finding_from_json(item), line, reason) for item, line, reason in data["silenced"]),
        )
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"not a stored report: {error}") from error


def _finding_to_json(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "name": finding.name,
        "path": finding.path,
        "span": _span_to_json(finding.span),
        "message": finding.message,
        "levels": [finding.confidence.value, finding.impact.value, finding.heat.value, finding.paid.value],
        "route": [_hop_to_json(hop) for hop in finding.route],
        "related": [_hop_to_json(hop) for hop in finding.related],
        "advice": finding.advice,
        "cell": finding.cell,
        "block": None if finding.block is None else _span_to_json(finding.block),
        "behind": [_hop_to_json(hop) for hop in finding.behind],
        "next": finding.is_next,
        "part": finding.part.value,
        "fix": None if finding.fix is None else _fix_to_json(finding.fix),
    }


def _finding_from_json(data: Any) -> Finding:
    confidence, impact, heat, paid = data["levels"]
    return Finding(
        code=str(data["code"]),
        name=str(data["name"]),
        path=str(data["path"]),
        span=_span_from_json(data["span"]),
        message=str(data["message"]),
        confidence=Confidence(confidence),
        impact=Impact(impact),
        heat=Heat(heat),
        route=tuple(_hop(item) for item in data["route"]),
        fix=None if data["fix"] is None else _fix_from_json(data["fix"]),
        advice=str(data["advice"]),
        related=tuple(_hop(item) for item in data["related"]),
        cell=_cell(data["cell"]),
        block=None if data["block"] is None else _span_from_json(data["block"]),
        behind=tuple(_hop(item) for item in data["behind"]),
        is_next=bool(data["next"]),
        part=Part(data["part"]),
        paid=Paid(paid),
    )


def _fix_to_json(fix: Fix) -> list[Any]:
    edits = [[_span_to_json(edit.span), edit.text, edit.cell] for edit in fix.edits]
    return [fix.title, fix.applicability.value, edits, fix.reason, fix.numerics]


def _fix_from_json(data: Any) -> Fix:
    title, applicability, edits, reason, numerics = data
    made = tuple(Edit(_span_from_json(span), str(text), _cell(cell)) for span, text, cell in edits)
    return Fix(str(title), Applicability(applicability), made, str(reason), str(numerics))


def _span_to_json(span: Span) -> list[int]:
    return [span.line, span.column, span.end_line, span.end_column]


def _span_from_json(data: Any) -> Span:
    line, column, end_line, end_column = (int(item) for item in data)
    return Span(line, column, end_line, end_column)


def _hop_to_json(hop: Hop) -> list[Any]:
    return [hop.path, hop.line, hop.text, hop.cell, hop.code]


def _hop(data: Any) -> Hop:
    path, line, text, cell, code = data
    return Hop(str(path), int(line), str(text), _cell(cell), str(code))


def _cell(data: Any) -> int | None:
    return None if data is None else int(data)
