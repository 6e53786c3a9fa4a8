"""What of a report is shown: not what the baseline knows, and only what stands on changed lines."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from perflint.errors import PerflintError

if TYPE_CHECKING:
    from perflint.finding import Report
    from perflint.project.baseline import Baseline
    from perflint.project.changes import Changes
    from perflint.project.discovery import Discovery
    from perflint.project.settings import Settings

C = TypeVar("C", bound=Callable[..., Any])


def narrowing_options(function: C) -> C:
    """The options of a narrowed report: `baseline`, `no_baseline`, `changed_since`."""
    for option in reversed(
        (
            click.option(
                "--baseline",
                type=click.Path(path_type=Path, dir_okay=False),
                help="Do not report findings in this baseline file. Default: the configured one.",
            ),
            click.option("--no-baseline", is_flag=True, help="Report findings of the baseline, too."),
            click.option(
                "--changed-since",
                metavar="REV",
                help=(
                    "Report only findings on lines changed since this git revision; the whole project is still "
                    "analyzed."
                ),
            ),
        )
    ):
        function = option(function)
    return function


def git_root(discovery: Discovery, settings: Settings) -> Path | None:
    """The git root around the project: what report formats for code hosts name files from, and revisions are of."""
    start = discovery.root or settings.root or Path.cwd()
    return next((folder for folder in (start, *start.parents) if os.path.exists(folder / ".git")), None)  # noqa: PTH110


class Narrowing:
    """A function from a report to what of it is shown. It leaves a report alone where nothing was asked for."""

    def __init__(self, baseline: Baseline | None = None, changes: Changes | None = None) -> None:
        self._baseline = baseline
        self._changes = changes

    @classmethod
    def of(
        cls, settings: Settings, git_root: Path | None, baseline: Path | None, changed_since: str | None, *, off: bool
    ) -> Narrowing:
        """`off` switches the baseline of the configuration off. Raises PerflintError."""
        if off and baseline is not None:
            raise click.UsageError("--baseline and --no-baseline exclude each other")
        file = None if off else baseline or settings.baseline
        known = changes = None
        if file is not None:
            from perflint.project.baseline import Baseline

            known = Baseline.read(file)
        if changed_since is not None:
            from perflint.project.changes import Changes

            if git_root is None:
                raise PerflintError("--changed-since: not a git repository")
            changes = Changes(git_root, changed_since)
        return cls(known, changes)

    def __call__(self, report: Report) -> Report:
        notes = list(report.notes)
        if self._baseline is not None:
            compared = self._baseline.compare(report)
            report = compared.report
            if compared.known:
                notes.append(f"{compared.known} in the baseline")
        if self._changes is not None:
            from perflint.report.counts import many

            before, errors = len(report.findings), len(report.errors)
            report = self._changes.narrow(report)
            if len(report.findings) < before:
                notes.append(f"{before - len(report.findings)} on unchanged lines")
            if len(report.errors) < errors:
                notes.append(f"{many(errors - len(report.errors), 'error')} in unchanged files")
        return dataclasses.replace(report, notes=tuple(notes))
