"""The `json-lines` format: one JSON object a line, a finding or an error as the `json` format writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perflint.report.as_json import dump, finding_object, problem_object

if TYPE_CHECKING:
    from perflint.finding import Report
    from perflint.report import Options


def render(report: Report, options: Options) -> str:  # noqa: ARG001 - the signature of all formats
    lines = [dump(finding_object(one)) for one in report.findings]
    lines += [dump(problem_object(one)) for one in report.errors]
    return "".join(f"{line}\n" for line in lines)
