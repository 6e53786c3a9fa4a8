"""The `concise` format: one line a finding, `path:line:column: CODE [*] message (impact)`, for terminals and `grep`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perflint.finding import Finding, Report
from perflint.report import places
from perflint.report.as_text import counted, problem_line, summary
from perflint.report.style import OF_IMPACT, Palette, Tint, linked
from perflint.report.visible import visible, visible_prose

if TYPE_CHECKING:
    from perflint.report import Options


def render(report: Report, options: Options) -> str:
    paint = Palette(options.color)
    if options.statistics:
        return "\n\n".join([*counted(report, paint), summary(report, options, paint)]) + "\n"
    lines = [f"{_place(one, options, paint)} {finding_line(one, paint)}" for one in report.findings]
    lines += [problem_line(one, paint) for one in report.errors]
    lines.append(_explained(report, summary(report, options, paint)))
    return "\n".join(lines) + "\n"


def _place(finding: Finding, options: Options, paint: Palette) -> str:
    return linked(f"{paint(Tint.PLACE, visible(places.place(finding)))}:", finding.path, finding.span.line, options)


def _explained(report: Report, told: str) -> str:
    """The summary, and what the marks stand for, where there are any."""
    found = {_mark(one) for one in report.findings}
    meant = [f"{mark.strip()} {label} fix" for label, mark in _MARKS.items() if mark in found]
    return f"{told} Marks: {', '.join(meant)}." if meant else told


def _mark(finding: Finding) -> str:
    return "" if finding.fix is None else _MARKS.get(finding.fix.applicability.label, "")


def finding_line(finding: Finding, paint: Palette) -> str:
    """What a line says after its place. `[*]` marks a safe fix, `[-]` an unsafe one."""
    code = paint(OF_IMPACT[finding.impact], visible(finding.code))
    seen = "" if finding.observed is None else f"; observed: {finding.observed.phrase}"
    also = places.other_places(finding)
    message = f"{finding.message} Also at {also}." if also else finding.message
    rating = paint(Tint.QUIET, f"({finding.impact.label} impact{seen})")
    return f"{code} {_mark(finding)}{visible_prose(message)} {rating}"


_MARKS = {"safe": "[*] ", "unsafe": "[-] "}
