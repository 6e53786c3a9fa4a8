"""`perflint fix`."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perflint.cli import console, fixing, narrowing, project, proving, verifying
from perflint.cli.app import CLEAN, FAULT, FOUND
from perflint.finding import Applicability, Problem
from perflint.report.counts import many

if TYPE_CHECKING:
    from perflint.cli.fixing import Fixing
    from perflint.engine import Options
    from perflint.finding import Report
    from perflint.fixes.rounds import FixedFile
    from perflint.project.discovery import Discovery
    from perflint.verify.choice import LeftOut

_COLORS = {"+": "green", "-": "red", "@": "cyan"}


@dataclass(frozen=True, slots=True)
class _Asked:
    """The command line. `workload` are the options of --verify, by field name, None where nothing is said."""

    paths: tuple[str, ...]
    workload: Mapping[str, Any]
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    confidence: str | None
    config: Path | None
    stdin_filename: str | None
    baseline: Path | None
    changed_since: str | None
    jobs: int | None
    time_limit: float | None
    apply: bool
    diff: bool
    interactive: bool
    unsafe: bool
    verify: bool
    no_baseline: bool
    force_exclude: bool
    extra: bool
    color: bool | None
    no_cache: bool
    debug: bool

    @classmethod
    def of(cls, paths: tuple[str, ...], given: Mapping[str, Any]) -> _Asked:
        """From all options by name. Raises UsageError for those that exclude each other."""
        own = {field.name: given[field.name] for field in dataclasses.fields(cls) if field.name in given}
        workload = {name: value for name, value in given.items() if name not in own}
        if own["apply"] and own["diff"]:
            raise click.UsageError("--apply and --diff exclude each other")
        if own["interactive"] and (own["diff"] or own["verify"] or "-" in paths):
            raise click.UsageError("--interactive works on files only, and not with --diff or --verify")
        own["apply"] = own["apply"] or own["interactive"]
        if not own["verify"] and any(value is not None for value in workload.values()):
            raise click.UsageError("workload options have no effect without --verify")
        if own["verify"] and "-" in paths:
            raise click.UsageError("--verify cannot measure standard input")
        return cls(paths, workload, **own)


@click.command("fix")
@click.argument("paths", nargs=-1, shell_complete=project.complete_files)
@click.option("--apply", is_flag=True, help="Apply the fixes to the files.")
@click.option("--diff", is_flag=True, help="Print the changes as a diff (default).")
@click.option("--interactive", "-i", is_flag=True, help="Ask before each fix, as 'git add -p' does.")
@click.option("--unsafe", is_flag=True, help="Include unsafe fixes; review the diff.")
@project.selection_options
@project.force_exclude_option
@narrowing.narrowing_options
@click.option("--stdin-filename", metavar="FILE", help="File name of standard input (path '-').")
@click.option("--verify", is_flag=True, help="Keep only fixes that are measurably faster and change no result.")
@click.option(
    "--min-speedup",
    type=click.FloatRange(0),
    metavar="RATIO",
    help=("With --verify: the minimum speed-up a fix must reach."),
)
@verifying.workload_options
@click.option("--color/--no-color", default=None, help="Colored output. Default: on a terminal only.")
@project.run_options
def command(paths: tuple[str, ...], **given: Any) -> int:
    """Fix PATHS (default: the working directory): print the changes as a diff, or apply them with --apply.

    Without --unsafe, only fixes that preserve behavior are applied. The path '-' fixes standard input to standard
    output.

    With --verify and a workload (--bench or --command), every fix is measured alone and with the others in a copy of
    the tree. Fixes that are slower, make no difference, change the result, are not reached by the workload or stay
    undecided are rejected. --device simulated compares synchronizations, launches and copied bytes, not times.

    Exit code 0: nothing to fix; 1: files were changed, or fixes are left; 2: an error in the input or in perflint.
    """
    from perflint.engine import check

    asked = _Asked.of(paths or (".",), given)
    settings = project.settings_for(
        project.named(asked.paths, asked.stdin_filename), asked.config, asked.confidence, asked.time_limit
    )
    discovery, stdin = project.find(asked.paths, asked.stdin_filename, settings, force_exclude=asked.force_exclude)
    chosen = project.choose(discovery, settings, asked.select, asked.ignore, extra=asked.extra)
    root = narrowing.git_root(discovery, settings)
    narrow = narrowing.Narrowing.of(settings, root, asked.baseline, asked.changed_since, off=asked.no_baseline)
    with console.progress() as progress:
        options = dataclasses.replace(
            project.options_for(settings, chosen, asked.jobs), stdin=stdin, progress=progress, cache=not asked.no_cache
        )
        report = narrow(check(discovery, options))
    result, left_out = _fixed(asked, discovery, options, report, narrow)
    files, failed = _delivered(asked, discovery, result, stdin)
    problems = [*report.errors, *result.problems, *failed]
    _comment(result, problems, debug=asked.debug)
    for item in left_out:
        console.complain(proving.left_out(item))
    if stdin is None:
        for line in fixing.without_fix(report, chosen.known):
            console.complain(line)
    is_made = asked.apply or (stdin is not None and not asked.diff)
    left = len(result.outcome.dropped)
    nothing = (
        "no file was written"
        if failed
        else f"no fix was applied, {many(left, 'fix')} rejected"
        if left
        else "nothing to fix"
    )
    console.complain(_summary(files, result.more, nothing, is_made=is_made))
    if problems:
        return FAULT
    # What standard input becomes is all made; a file that was changed has to be looked at and staged.
    is_clean = not files or (stdin is not None and is_made)
    return CLEAN if is_clean and not result.outcome.dropped else FOUND


def _fixed(
    asked: _Asked, discovery: Discovery, options: Options, report: Report, narrow: Callable[[Report], Report]
) -> tuple[Fixing, tuple[LeftOut, ...]]:
    """What fixes make of the files of `report`, which is narrowed already; and those that were measured not to pay."""
    weakest = Applicability.UNSAFE if asked.unsafe else Applicability.SAFE
    if asked.interactive:
        from perflint.cli import picking

        picked = picking.pick(discovery, options, report, weakest)
        return fixing.fix_report(discovery, options, picked, weakest, proving.only_those_of(picked)), ()
    if not asked.verify:
        return fixing.fix_report(discovery, options, report, weakest, narrow), ()
    proven = proving.prove(discovery, options.settings, report, weakest, asked.workload)
    only = proving.only_those_of(proven.report)
    return fixing.fix_report(discovery, options, proven.report, weakest, only), proven.left_out


def _delivered(
    asked: _Asked, discovery: Discovery, result: Fixing, stdin: tuple[str, bytes] | None
) -> tuple[list[FixedFile], list[Problem]]:
    """Print what standard input becomes, write the files, or show the diff. The files that changed, or would; and what
    went wrong with others.
    """
    files = list(result.outcome.files)
    if stdin is not None and not asked.diff:
        _print_content(stdin[1], result)
        return files, []
    if not asked.apply:
        _print_diff(result, colored=console.wants_color(asked.color))
        return files, []
    written, failed = fixing.write(discovery, result)
    console.write("".join(f"{fixing.named(file)}\n" for file in written))
    return written, failed


def _print_content(original: bytes, result: Fixing) -> None:
    """What standard input becomes, byte for byte; itself where nothing changes or it cannot be read."""
    content = next(iter(fixing.encoded(result).values()), original)
    with console.printing() as stream:
        stream.buffer.write(content)


def _print_diff(result: Fixing, *, colored: bool) -> None:
    from perflint.fixes.diff import file_diff
    from perflint.report.visible import visible_lines

    for file in result.outcome.files:
        text = file_diff(file.source.path, file.source.raw, file.source.raw_of(file.text))
        if console.is_terminal(sys.stdout):  # for people to read; elsewhere it is a patch, exact to the byte
            text = visible_lines(text.replace("\r\n", "\n"))
        console.write("".join(map(_colored, text.splitlines(keepends=True))) if colored else text)


def _colored(line: str) -> str:
    color = _COLORS.get(line[0]) if not line.startswith(("+++", "---")) else None
    return click.style(line, fg=color, bold=color is None and line[0] in "+-")


def _comment(result: Fixing, problems: Iterable[Problem], *, debug: bool) -> None:
    """On standard error, so that a diff or a fixed file is all there is on standard output."""
    for problem in problems:
        console.complain(fixing.described(problem))
        if debug and problem.detail:
            sys.stderr.write(f"{problem.detail}\n")
    for item in result.outcome.dropped:
        console.complain(fixing.not_fixed(item))


def _summary(files: Sequence[FixedFile], more: int, nothing: str, *, is_made: bool) -> str:
    counted = f"{many(sum(len(file.taken) for file in files), 'fix')} in {many(len(files), 'file')}"
    text = nothing if not files else f"{counted} made" if is_made else f"{counted}; apply with --apply"
    return f"{text} ({more} more with --unsafe)" if more else text
