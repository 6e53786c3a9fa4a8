"""`perflint fix --interactive`: each fix is shown as a hunk, and the user says whether it is made (`git add -p`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from perflint.cli import console
from perflint.cli.proving import keeping
from perflint.finding import Applicability, Finding, Report

if TYPE_CHECKING:
    from perflint.engine import Options
    from perflint.project.discovery import Discovery

_ANSWERS = "y,n,a,d,q,?"
_HELP = (
    "y - apply this fix\nn - skip this fix\na - apply this fix and all later fixes of the file\nd - skip this "
    "fix and all later fixes of the file\nq - quit; skip this fix and all remaining ones\n? - print help\n"
)


def pick(discovery: Discovery, options: Options, report: Report, weakest: Applicability) -> Report:
    """`report` with only the fixes (at least `weakest`) that the user said yes to. Raises nothing at end of input:
    that is `q`.
    """
    offered = [one for one in report.findings if one.fix is not None and one.fix.applicability >= weakest]
    offered.sort(key=lambda one: one.sort_key)
    shown = _hunks(discovery, options, report, weakest, offered)
    return keeping(report, tuple(_chosen(shown)))


def _chosen(shown: Iterator[tuple[Finding, str, str]]) -> Iterator[Finding]:
    whole: dict[str, bool] = {}
    for finding, hunk, which in shown:
        if finding.path in whole:
            if whole[finding.path]:
                yield finding
            continue
        answer = _asked(finding, hunk, which)
        if answer == "q":
            return
        if answer in "ad":
            whole[finding.path] = answer == "a"
        if answer in "ya":
            yield finding


def _asked(finding: Finding, hunk: str, which: str) -> str:
    from perflint.report.places import place
    from perflint.report.visible import visible, visible_lines, visible_prose

    fix = finding.fix
    assert fix is not None
    safety = fix.applicability.label + (f": {fix.reason}" if fix.reason else "")
    console.complain(f"{place(finding)}: {finding.code} {visible_prose(finding.message)}")
    console.complain(f"  {fix.title} ({safety}{fix.numerics and f'; {fix.numerics}'})")
    click.echo(visible_lines(hunk.replace("\r\n", "\n")), err=True, nl=False)
    while True:
        try:
            said: str = click.prompt(f"({which}) Apply this fix [{_ANSWERS}]?", prompt_suffix=" ", err=True)
        except click.Abort:  # end of input, or Ctrl-C
            click.echo(err=True)
            return "q"
        if said.strip().lower() in {"y", "n", "a", "d", "q"}:
            return said.strip().lower()
        if said.strip() != "?":
            click.echo(f"{visible(said)}: one of {_ANSWERS}", err=True)
        click.echo(_HELP, err=True, nl=False)


def _hunks(
    discovery: Discovery, options: Options, report: Report, weakest: Applicability, offered: Sequence[Finding]
) -> Iterator[tuple[Finding, str, str]]:
    """Each fix that can be made by itself, with its diff and `1/3`."""
    from perflint.cli.fixing import fix_report
    from perflint.fixes.diff import file_diff

    for number, finding in enumerate(offered, 1):
        alone = fix_report(discovery, options, keeping(report, (finding,)), weakest, lambda found: keeping(found, ()))
        for file in alone.outcome.files:
            before, after = file.source.raw, file.source.raw_of(file.text)
            yield finding, file_diff(file.source.path, before, after), f"{number}/{len(offered)}"
        for item in alone.outcome.dropped:
            from perflint.cli.fixing import not_fixed

            console.complain(not_fixed(item))
