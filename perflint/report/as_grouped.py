"""The `grouped` format: a heading for each file, and one line a finding under it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perflint.finding import Finding, Report
from perflint.report import order
from perflint.report.as_concise import finding_line
from perflint.report.as_text import counted, problem_line, summary
from perflint.report.style import Palette, Tint
from perflint.report.visible import visible

if TYPE_CHECKING:
    from perflint.report import Options


def render(report: Report, options: Options) -> str:
    paint = Palette(options.color)
    if options.statistics:
        return "\n\n".join([*counted(report, paint), summary(report, options, paint)]) + "\n"
    by = options.layout.group_by
    blocks = [_block(group, by, paint) for group in order.grouped(report.findings, "file" if by == "none" else by)]
    if report.errors:
        blocks.append("\n".join(problem_line(one, paint) for one in report.errors))
    return "\n\n".join([*(one for one in blocks if one), summary(report, options, paint)]) + "\n"


def _block(group: order.Group, by: str, paint: Palette) -> str:
    if not group.findings:
        return ""
    places_of = [_where(one, with_path=by == "rule") for one in group.findings]
    wide = max(map(len, places_of))
    lines = [f"  {where.ljust(wide)}  {finding_line(one, paint)}" for where, one in zip(places_of, group.findings)]
    return "\n".join([paint(Tint.PLACE, visible(group.title)), *lines])


def _where(finding: Finding, *, with_path: bool) -> str:
    cell = "" if finding.cell is None else f"cell {finding.cell}:"
    path = f"{visible(finding.path)}:" if with_path else ""
    return f"{path}{cell}{finding.span.line}:{finding.span.column}"
