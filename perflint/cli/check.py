"""`perflint check`."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from perflint import __version__
from perflint.cli import console, narrowing, project
from perflint.cli.app import CLEAN, FAULT, FOUND
from perflint.cli.joining import Joining
from perflint.errors import PerflintError
from perflint.finding import Heat, Impact
from perflint.project.discovery import display_path
from perflint.project.settings import FailOn, Settings, level_of
from perflint.report import COUNTING, FORMATS, render
from perflint.report.counts import many
from perflint.report.order import GROUPS, SORTS, Layout

if TYPE_CHECKING:
    from perflint.cli.fixing import Made
    from perflint.cli.ignoring import Ignored
    from perflint.engine import Memory, Options
    from perflint.engine.cluster import RayExecutor
    from perflint.finding import Report
    from perflint.project.discovery import Discovery
    from perflint.report.measured import Bar


class _Asked(NamedTuple):
    """The command line."""

    paths: tuple[str, ...]
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    confidence: str | None
    impact: str | None
    config: Path | None
    fail_on: str | None
    output_format: str | None
    sort: str | None
    group_by: str | None
    max_findings: int | None
    output: Path | None
    stdin_filename: str | None
    explain_heat: str | None
    baseline: Path | None
    observed: Path | None
    changed_since: str | None
    reason: str
    jobs: int | None
    time_limit: float | None
    executor: str
    ray_address: str | None
    fix: bool
    unsafe: bool
    extra: bool
    force_exclude: bool
    exit_zero: bool
    no_baseline: bool
    add_ignores: bool
    silenced: bool
    statistics: bool
    watch: bool
    color: bool | None
    no_cache: bool
    debug: bool

    def refuse_what_clashes(self) -> None:
        """Raises UsageError."""
        if self.unsafe and not self.fix:
            raise click.UsageError("--unsafe has no effect without --fix")
        if self.reason and not self.add_ignores:
            raise click.UsageError("--reason has no effect without --add-ignores")
        if "-" in self.paths and (self.fix or self.add_ignores):
            raise click.UsageError(
                "standard input cannot be rewritten; use 'perflint fix -', which prints the fixed code"
            )
        if self.ray_address is not None and self.executor != "ray":
            raise click.UsageError("--ray-address has no effect without --executor ray")
        if self.watch and ("-" in self.paths or self.add_ignores or self.explain_heat):
            raise click.UsageError("--watch works on files only, and not with --add-ignores or --explain-heat")

    def settings(self) -> Settings:
        named = project.named(self.paths, self.stdin_filename)
        settings = project.settings_for(named, self.config, self.confidence, self.time_limit)
        given = {
            "impact": None if self.impact is None else level_of(Impact, self.impact, "--impact"),
            "fail_on": None if self.fail_on is None else FailOn.parse(self.fail_on),
            "output_format": self.output_format,
            "sort": self.sort,
            "group_by": self.group_by,
            "max_findings": self.max_findings,
        }
        if self.select and settings.impact is None and self.impact is None:
            given["impact"] = Impact.LOW  # who names rules asks for what they find
        changes: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        return dataclasses.replace(settings, **changes)


@click.command("check")
@click.argument("paths", nargs=-1, shell_complete=project.complete_files)
@project.selection_options
@click.option("--fix", is_flag=True, help="Apply safe fixes before the check, as 'perflint fix --apply'.")
@click.option("--unsafe", is_flag=True, help="With --fix: apply unsafe fixes too; review the diff.")
@click.option(
    "--impact",
    type=click.Choice([level.label for level in Impact], case_sensitive=False),
    help="Minimum impact of printed findings. Default: medium in text formats, low in the others and with --select.",
)
@click.option(
    "--fail-on", metavar="LEVEL", help=("Findings that cause exit code 1: impact=LEVEL, confidence=LEVEL, or both.")
)
@project.force_exclude_option
@narrowing.narrowing_options
@click.option(
    "--observed",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Compare findings with this file of 'perflint observe'. Default: the configured one.",
)
@click.option("--add-ignores", is_flag=True, help="Add suppression comments for all findings to the files.")
@click.option("--reason", default="", metavar="TEXT", help="With --add-ignores: the reason in the comments.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if there are findings.")
@click.option("--output-format", type=click.Choice(FORMATS), help="Output format.")
@click.option(
    "--sort", type=click.Choice(SORTS), help=("Sort order. Default: impact in text formats, path in the others.")
)
@click.option("--group-by", type=click.Choice(GROUPS), help="Group findings in text formats.")
@click.option("--max-findings", type=click.IntRange(1), metavar="N", help="Print only the worst N findings.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the report to this file.")
@click.option("--silenced", is_flag=True, help="In SARIF, include suppressed findings, marked as suppressed.")
@click.option("--statistics", is_flag=True, help="Print the number of findings per rule.")
@click.option("--watch", is_flag=True, help="Check again whenever a file changes, until interrupted.")
@click.option("--stdin-filename", metavar="FILE", help="File name of standard input (path '-').")
@click.option(
    "--explain-heat", metavar="FILE:LINE", help=("Explain how often a line runs, and why, instead of checking.")
)
@click.option(
    "--executor",
    type=click.Choice(["local", "ray"]),
    default="local",
    help=("Check files in local processes or on a Ray cluster."),
)
@click.option("--ray-address", metavar="ADDRESS", help="Address of the Ray cluster. Default: $RAY_ADDRESS.")
@click.option("--color/--no-color", default=None, help="Colored output. Default: on a terminal only.")
@project.run_options
def command(paths: tuple[str, ...], **given: Any) -> int:
    """Check PATHS (default: the working directory). The whole project around them is analyzed.

    Exit code 0: no findings; 1: findings, or files changed by --fix; 2: an error in the input or in perflint.
    """
    asked = _Asked(paths=paths or (".",), **given)
    asked.refuse_what_clashes()
    return _watch(asked) if asked.watch else _once(asked)


def _watch(asked: _Asked) -> int:
    from perflint.cli.watching import watch
    from perflint.engine import Memory

    def files() -> tuple[Path, ...]:
        settings = asked.settings()
        discovery, _ = project.find(asked.paths, None, settings)
        configuration = () if settings.file is None else (settings.file,)
        observed = asked.observed or settings.observed
        evidence = () if observed is None else (observed,)
        return (*configuration, *evidence, *(one.file for one in discovery.analysed))

    memory = Memory()
    watch(lambda: _once(asked, memory), files)
    return CLEAN


def _executor(asked: _Asked) -> RayExecutor | None:
    if asked.executor == "local":
        return None
    from perflint.engine.cluster import RayExecutor

    return RayExecutor(asked.ray_address)


def _once(asked: _Asked, memory: Memory | None = None) -> int:
    settings = asked.settings()
    started = time.monotonic()
    counting = settings.failing
    shown_as = settings.output_format
    if asked.statistics and shown_as not in COUNTING:
        raise click.UsageError(f"--statistics works with --output-format {', '.join(COUNTING)}, not {shown_as}")
    discovery, stdin = project.find(asked.paths, asked.stdin_filename, settings, force_exclude=asked.force_exclude)
    chosen = project.choose(discovery, settings, asked.select, asked.ignore, extra=asked.extra)
    git_root = narrowing.git_root(discovery, settings)
    narrowed = narrowing.Narrowing.of(settings, git_root, asked.baseline, asked.changed_since, off=asked.no_baseline)
    joining = Joining.of(asked.observed, settings, chosen, discovery, stdin)
    narrow = joining.then(narrowed)
    with console.progress() as progress:
        options = dataclasses.replace(
            project.options_for(settings, chosen, asked.jobs),
            stdin=stdin,
            progress=progress,
            cache=not asked.no_cache,
            memory=memory,
            executor=_executor(asked),
            ends=not (asked.watch or asked.fix or asked.add_ignores),
        )
        if asked.explain_heat is not None:
            console.write(_explain_heat(discovery, options, asked.explain_heat))
            return CLEAN
        report, made, ignored = _checked(asked, discovery, options, narrow)
    if discovery.left_out:
        files = many(len(discovery.left_out), "AppleDouble file")
        report = dataclasses.replace(report, notes=(*report.notes, f"{files} (`._*`), no source"))
    for line in made.lines() if made is not None else ():
        console.complain(line)
    notes = _notes(asked, discovery, options, report) if shown_as == "text" else ()
    text = render(
        report,
        shown_as,
        chosen.known,
        color=asked.output is None and console.wants_color(asked.color),
        width=console.width(),
        statistics=asked.statistics,
        root=git_root,
        version=__version__,
        silenced=asked.silenced,
        measured=_measured(report, discovery) if shown_as == "html" else None,
        layout=Layout(settings.sort, settings.group_by, settings.max_findings, settings.impact),
        seconds=time.monotonic() - started if asked.output is None and console.is_terminal(sys.stdout) else None,
        links=asked.output is None and console.wants_links(),
        fails=counting.counts,
        step_picture=joining.picture() if shown_as == "html" else "",
        notes=notes,
    )
    _deliver(text, asked.output, report)
    if asked.debug:
        for problem in report.errors:
            if problem.detail:
                sys.stderr.write(f"{problem.path}: {problem.message}\n{problem.detail}\n")
    if report.errors or (made is not None and made.problems) or (ignored is not None and ignored.problems):
        return FAULT
    has_written = made is not None and bool(made.written)
    is_clean = not has_written and not any(map(counting.counts, report.findings))
    return CLEAN if is_clean or asked.exit_zero else FOUND


def _checked(
    asked: _Asked, discovery: Discovery, options: Options, narrow: Callable[[Report], Report]
) -> tuple[Report, Made | None, Ignored | None]:
    """What is found once the fixes and comments that are asked for are made, and what became of these."""
    from perflint.engine import check

    report = narrow(check(discovery, options))
    made, ignored = None, None
    if asked.fix:
        from perflint.cli import fixing

        made = fixing.make(discovery, options, report, narrow, unsafe=asked.unsafe)
        if made.written:
            report = narrow(check(discovery, options))
    if asked.add_ignores:
        from perflint.cli import ignoring

        ignored = ignoring.add_ignores(discovery, options, _by_rules(report), asked.reason)
        ignoring.report_ignored(ignored)
        report = narrow(check(discovery, options))
    return report, made, ignored


def _notes(asked: _Asked, discovery: Discovery, options: Options, report: Report) -> tuple[str, ...]:
    """What is said of the program as a whole: how much of it is reached, and where nothing is, that it is so and which
    files cannot be imported.

    A run over a few files of many, as a hook's, says nothing of the others.
    """
    is_hot = any(one.heat >= Heat.STEP for one in report.findings)
    is_whole = {one.display for one in discovery.reported} >= {one.display for one in discovery.analysed}
    if report.errors or not (asked.statistics or (is_whole and not is_hot)):
        return ()
    from perflint.analysis.frequency.reach import NO_LOOP
    from perflint.engine import reach_of

    reach = reach_of(discovery, options)
    notes = tuple(reach.lines() if asked.statistics else reach.left_out())
    return (*notes, NO_LOOP) if reach.uses_torch and not reach.hot else notes


def _by_rules(report: Report) -> Report:
    """Without what only an observation found: no rule finds it again, to see that a comment silences it."""
    found = (one for one in report.findings if one.observed is None or one.observed.by_rule)
    return dataclasses.replace(report, findings=tuple(found))


def _measured(report: Report, discovery: Discovery) -> dict[str, list[Bar]]:
    """What was measured about the rules that found something, here or before perflint was shipped."""
    from perflint.report.measured import Bar
    from perflint.verify.evidence import measured

    bars: dict[str, list[Bar]] = {}
    for code in sorted({finding.code for finding in report.findings}):
        for one in measured(code, discovery.root):
            result = one.result
            if result.ratio is not None and result.ratio_low is not None and result.ratio_high is not None:
                what = f"{result.workload} {result.size}".strip()
                verdict = result.verdict.value
                figures = (result.ratio, result.ratio_low, result.ratio_high)
                bars.setdefault(code, []).append(Bar(what, one.where(), verdict, *figures))
    return bars


def _deliver(text: str, output: Path | None, report: Report) -> None:
    if output is None:
        console.write(text)
        return
    console.write_file(output, text)
    if report.errors:
        console.complain(f"{many(len(report.errors), 'error')}, listed in {output}")


def _explain_heat(discovery: Discovery, options: Options, place: str) -> str:
    """Raises PerflintError when `place` names no line."""
    from perflint import engine

    file, _, line = place.rpartition(":")
    cell = None
    if file.rpartition(":")[0].endswith(".ipynb"):
        file, _, number = file.rpartition(":")
        cell = int(number) if number.isdecimal() else 0
    if not file or not line.isdecimal() or (cell is None) == file.endswith(".ipynb"):
        raise PerflintError(f"--explain-heat: {place!r} is not FILE:LINE, nor NOTEBOOK:CELL:LINE")
    text = engine.explain_heat(discovery, options, display_path(Path(file)), int(line), cell)
    if cell is None:
        last = len(Path(file).read_bytes().splitlines())
        if not 1 <= int(line) <= last:
            raise PerflintError(f"--explain-heat: {file} has no line {line}; its last line is {last}")
    return text.rstrip("\n") + "\n"
