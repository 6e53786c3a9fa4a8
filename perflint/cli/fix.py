"""`perflint fix`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perflint.cli import console, fixing, narrowing, project, proving, verifying
from perflint.cli.app import CLEAN, FAULT, FOUND
from perflint.finding import Applicability, Problem

if TYPE_CHECKING:
    from perflint.cli.fixing import Fixing
    from perflint.fixes.rounds import FixedFile

_COLORS = {"+": "green", "-": "red", "@": "cyan"}


@click.command("fix")
@click.argument("paths", nargs=-1, shell_complete=project.complete_files)
@click.option("--apply", is_flag=True, help="Write the changes.")
@click.option("--diff", is_flag=True, help="Show the changes and write nothing; the default.")
@click.option("--unsafe", is_flag=True, help="Include fixes that need a person's look.")
@project.selection_options
@narrowing.narrowing_options
@click.option("--stdin-filename", metavar="FILE", help="Name of what the path '-' reads from standard input.")
@click.option("--verify", is_flag=True, help="Keep only fixes that are measured to pay, and change no result.")
@click.option("--min-speedup", type=click.FloatRange(0), metavar="RATIO", help="With --verify, ask for as much.")
@verifying.workload_options
@click.option("--color/--no-color", default=None, help="Colour, by default on a terminal only.")
@project.run_options
def command(
    paths: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    confidence: str | None,
    config: Path | None,
    stdin_filename: str | None,
    baseline: Path | None,
    changed_since: str | None,
    jobs: int | None,
    time_limit: float | None,
    *,
    apply: bool,
    diff: bool,
    unsafe: bool,
    verify: bool,
    no_baseline: bool,
    extra: bool,
    color: bool | None,
    no_cache: bool,
    debug: bool,
    **given: Any,
) -> int:
    """Fix PATHS (default: the working directory): show the changes as a diff, or make them with --apply.

    Only fixes proven to keep behaviour the same, unless --unsafe is given. The path '-' fixes standard input to
    standard output.

    With --verify and a workload (--bench or --command) every fix is measured alone and with the others in a copy of
    the tree; what is slower, makes no difference or changes the result is left out.

    Exit code 0: nothing to fix; 1: something was changed, or is left to fix; 2: the input or perflint was at fault.
    """
    from perflint.run import Options, check

    if apply and diff:
        raise click.UsageError("--apply and --diff exclude each other")
    if not verify and any(value is not None for value in given.values()):
        raise click.UsageError("workloads are for --verify")
    if verify and "-" in paths:
        raise click.UsageError("--verify cannot measure standard input")
    paths = paths or (".",)
    named = (stdin_filename or "stdin.py",) if "-" in paths else paths
    settings = project.settings_for(named, config, confidence, time_limit)
    discovery, stdin = project.find(paths, stdin_filename, settings)
    chosen = project.choose(settings, select, ignore, extra=extra)
    root = narrowing.git_root(discovery, settings)
    narrow = narrowing.Narrowing.of(settings, root, baseline, changed_since, off=no_baseline)
    with console.progress() as progress:
        options = Options(
            settings=settings,
            rules=[rule() for rule in chosen.running],
            stdin=stdin,
            jobs=jobs or settings.jobs or project.default_jobs(),
            progress=progress,
            cache=not no_cache,
            everything=len(chosen.running) == len(chosen.known),
        )
        report = narrow(check(discovery, options))
    weakest = Applicability.UNSAFE if unsafe else Applicability.SAFE
    proven = proving.prove(discovery, settings, report, weakest, given) if verify else None
    if proven is not None:
        result = fixing.fix_report(discovery, options, proven.report, weakest, proving.only_those_of(proven.report))
    else:
        result = fixing.fix_report(discovery, options, report, weakest, narrow)
    problems = [*report.errors, *result.problems]
    files = list(result.outcome.files)
    nothing = "nothing to fix"
    if stdin is not None and not diff:
        _print_content(stdin[1], result)
    elif apply:
        files, failed = fixing.write(discovery, result)
        console.write("".join(f"{fixing.named(file)}\n" for file in files))
        problems += failed
        nothing = "nothing was written" if failed else nothing
    else:
        _print_diff(result, colored=console.wants_color(color))
    is_made = apply or (stdin is not None and not diff)
    _comment(result, problems, debug=debug)
    for item in proven.left_out if proven is not None else ():
        console.complain(proving.left_out(item))
    console.complain(_summary(files, result.more, nothing, is_made=is_made))
    if problems:
        return FAULT
    # What standard input becomes is all made; a file that was changed has to be looked at and staged.
    is_clean = not files or (stdin is not None and is_made)
    return CLEAN if is_clean and not result.outcome.dropped else FOUND


def _print_content(original: bytes, result: Fixing) -> None:
    """What standard input becomes, byte for byte; itself where nothing changes or it cannot be read."""
    content = next(iter(fixing.encoded(result).values()), original)
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _print_diff(result: Fixing, *, colored: bool) -> None:
    from perflint.fixes.diff import file_diff
    from perflint.report.visible import visible_lines

    for file in result.outcome.files:
        text = file_diff(file.source.path, file.source.raw, file.source.raw_of(file.text))
        if sys.stdout.isatty():  # for people to read; elsewhere it is a patch, exact to the byte
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
    fixes = sum(len(file.taken) for file in files)
    many = f"{fixes} fix{'es' if fixes != 1 else ''} in {len(files)} file{'s' if len(files) != 1 else ''}"
    text = nothing if not files else f"{many} made" if is_made else f"{many}; --apply makes them"
    return f"{text} ({more} more with --unsafe)" if more else text
