"""`perflint baseline`: the findings a project lives with for now, written down, shown and pruned."""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from perflint.cli import console, fixing, project
from perflint.cli.app import CLEAN, FAULT
from perflint.cli.joining import Joining
from perflint.project.baseline import FILE, Baseline
from perflint.project.discovery import display_path, project_root
from perflint.report.counts import many
from perflint.report.visible import visible

if TYPE_CHECKING:
    from perflint.finding import Report
    from perflint.project.settings import Settings

C = TypeVar("C", bound=Callable[..., Any])


@click.group("baseline")
def command() -> None:
    """Record existing findings, so that 'perflint check' reports only new ones.

    An entry is a rule, a file and the text of a line. It stays valid when lines move, and ends when the line changes.
    """


def _options(function: C) -> C:
    file = click.option(
        "--baseline",
        type=click.Path(path_type=Path, dir_okay=False),
        help=f"Baseline file. Default: the configured one, else {FILE} at the root of the project.",
    )
    return click.argument("paths", nargs=-1, shell_complete=project.complete_files)(
        file(project.selection_options(project.run_options(function)))
    )


@command.command("write")
@_options
def write(baseline: Path | None, **given: Any) -> int:
    """Record the findings in PATHS (default: the working directory). Entries of other files stay."""
    settings, report, checked = _checked(**given)
    file = _file(baseline, settings, given["paths"])
    before = Baseline.read(file) if file.exists() else Baseline(file)
    after = before.updated(report, {before.path_of(path) for path in checked})
    after.write()
    count = sum(after.entries.values())
    console.write(f"{many(count, 'finding')} written to {display_path(file)}\n")
    if settings.baseline is None:
        shown = display_path(file)
        console.write(f'To use it: perflint check --baseline {shown}, or baseline = "{file.name}" in [tool.perflint]\n')
    return FAULT if report.errors else CLEAN


@command.command("show")
@_options
def show(baseline: Path | None, **given: Any) -> int:
    """Show the number of recorded findings by rule and file, and entries that are no longer found."""
    settings, report, checked = _checked(**given)
    known = Baseline.read(_file(baseline, settings, given["paths"]))
    compared = known.compare(report)
    gone = _gone(known, compared.gone, checked)
    for field in ("rule", "path"):
        counts = Counter[str]()
        for entry, count in known.entries.items():
            counts[getattr(entry, field)] += count
        console.write(
            "".join(f"{count:>6}  {visible(name)}\n" for name, count in counts.most_common()) + "\n" if counts else ""
        )
    console.write(
        "".join(visible(f"gone: {one.path}: {one.rule} {one.line}") + "\n" for one in sorted(gone.elements()))
    )
    total = sum(known.entries.values())
    fresh = len(compared.report.findings)
    console.write(
        f"{many(total, 'known finding')}, {sum(gone.values())} of them no longer found; {many(fresh, 'new one')}\n"
    )
    return FAULT if report.errors else CLEAN


@command.command("prune")
@_options
def prune(baseline: Path | None, **given: Any) -> int:
    """Delete entries that are no longer found. Nothing is added."""
    settings, report, checked = _checked(**given)
    known = Baseline.read(_file(baseline, settings, given["paths"]))
    if report.errors:
        console.complain("not pruned: files that cannot be checked may still contain known findings")
        return FAULT
    pruned = known.without(known.compare(report).gone, {known.path_of(path) for path in checked})
    pruned.write()
    count = sum(known.entries.values()) - sum(pruned.entries.values())
    console.write(f"{many(count, 'finding')} deleted from {display_path(known.file)}\n")
    return CLEAN


def _gone(known: Baseline, gone: Counter[Any], checked: list[str]) -> Counter[Any]:
    """What is found no more, of the files that were checked or are not there."""
    paths = {known.path_of(path) for path in checked}
    return Counter(known.entries) - Counter(known.without(gone, paths).entries)


def _file(baseline: Path | None, settings: Settings, paths: tuple[str, ...]) -> Path:
    given = baseline or settings.baseline
    if given is not None:
        return given
    root = settings.root or project_root([Path(path).absolute() for path in paths or (".",)])
    return (root or Path.cwd()) / FILE


def _checked(
    paths: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    confidence: str | None,
    config: Path | None,
    jobs: int | None,
    time_limit: float | None,
    *,
    extra: bool,
    no_cache: bool,
    debug: bool,
) -> tuple[Settings, Report, list[str]]:
    """Settings, report, and the paths that were checked."""
    from perflint.engine import check

    paths = paths or (".",)
    settings = project.settings_for(paths, config, confidence, time_limit)
    discovery, _ = project.find(paths, None, settings)
    chosen = project.choose(discovery, settings, select, ignore, extra=extra)
    with console.progress() as progress:
        options = project.options_for(settings, chosen, jobs)
        report = check(discovery, dataclasses.replace(options, progress=progress, cache=not no_cache))
    # What only an observation finds is reported by `check` as well, where the configuration names one.
    report = Joining.of(None, settings, chosen, discovery, None)(report)
    for problem in report.errors:
        console.complain(fixing.described(problem))
        if debug and problem.detail:
            sys.stderr.write(f"{problem.detail}\n")
    return settings, report, [file.display for file in discovery.reported]
