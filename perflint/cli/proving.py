"""`perflint fix --verify`: of the fixes of a report, those that are measured to pay under the user's workload."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from perflint.cli import console, verifying
from perflint.errors import PerflintError
from perflint.finding import Applicability, Finding, Report
from perflint.report.counts import many
from perflint.verify.counting import SIMULATED
from perflint.verify.options import options_from

if TYPE_CHECKING:
    from perflint.project.discovery import Discovery
    from perflint.project.settings import Settings
    from perflint.verify.choice import LeftOut


@dataclass(frozen=True, slots=True)
class Proven:
    """`report` keeps the fixes that pay; `left_out` says of the others why not."""

    report: Report
    left_out: tuple[LeftOut, ...]


def prove(
    discovery: Discovery, settings: Settings, report: Report, weakest: Applicability, given: Mapping[str, Any]
) -> Proven:
    """Measure every fix of `report` that is at least `weakest`, alone and together, and print what came of it.

    `given` are options by field name. Raises PerflintError when there is no workload to measure by.
    """
    from perflint.verify.choice import Choice, LeftOut, choose
    from perflint.verify.fixtrials import fix_trials
    from perflint.verify.launch import require_extra
    from perflint.verify.results import Machine, Result
    from perflint.verify.tables import table

    options = options_from(settings, given)
    if not (options.bench or options.command):
        raise PerflintError("--verify needs a workload: --bench package.module:name or --command '...'")
    if options.device == SIMULATED and options.min_speedup is not None:
        raise PerflintError("--min-speedup needs a device that can be timed; --device simulated counts")
    require_extra()
    fixable = [one for one in report.findings if one.fix is not None and one.fix.applicability >= weakest]
    in_cells = tuple(LeftOut(one, "fixes of notebooks cannot be measured") for one in fixable if one.cell is not None)
    tried = [one for one in fixable if one.cell is None]
    if not tried:
        return Proven(keeping(report, ()), in_cells)
    console.complain(f"measuring {many(len(tried), 'fix')} in a copy of the tree")
    results: list[Result] = []
    where = Machine("", "", "")
    plan = verifying.plan_of(options)
    project = verifying.project_of(discovery, tried, options.link)
    with verifying.ended_by_signals(), verifying.progress() as progress, fix_trials(project, plan, progress) as trials:
        try:
            device, where = verifying.device_of(options, trials.launcher)
            workload = verifying.workload_of(options, device)
            trials.check(workload, tried)

            def measure(findings: Sequence[Finding]) -> Result:
                result = trials.measure(workload, findings)
                results.append(result)
                return result

            choice: Choice = choose(tried, measure, options.min_speedup)
        finally:
            if results:
                click.echo(table(where, results, color=False), err=True, nl=False)
    return Proven(keeping(report, choice.kept), (*choice.left_out, *in_cells))


def keeping(report: Report, kept: Sequence[Finding]) -> Report:
    """`report` with the fixes of `kept` and no others: what is written is what was measured."""
    identities = {id(one) for one in kept}
    findings = tuple(one if id(one) in identities else _without_fix(one) for one in report.findings)
    return dataclasses.replace(report, findings=findings)


def only_those_of(proven: Report) -> Callable[[Report], Report]:
    """Of what is found once fixes are made, only fixes that `proven` has too; others were never measured."""
    wanted = {_key(proven, one) for one in proven.findings if one.fix is not None}
    wanted -= {_key(proven, one) for one in proven.findings if one.fix is None}

    def narrow(report: Report) -> Report:
        findings = tuple(one if _key(report, one) in wanted else _without_fix(one) for one in report.findings)
        return dataclasses.replace(report, findings=findings)

    return narrow


def _without_fix(finding: Finding) -> Finding:
    return finding if finding.fix is None else dataclasses.replace(finding, fix=None)


def _key(report: Report, finding: Finding) -> tuple[str, str, str, str]:
    """What stays the same about a finding when lines move."""
    lines = report.texts.get(finding.path, "").splitlines()
    text = lines[finding.span.line - 1].strip() if finding.span.line <= len(lines) else ""
    return finding.path, finding.code, finding.message, text


def left_out(item: LeftOut) -> str:
    """`train.py:12: TPL101 left out (its fix): no difference: 1.01 times as fast (0.97 to 1.05)`."""
    finding = item.finding
    title = finding.fix.title if finding.fix is not None else finding.name
    cell = "" if finding.cell is None else f"cell {finding.cell}:"
    return f"{finding.path}:{cell}{finding.span.line}: {finding.code} rejected ({title}): {item.reason}"
