"""What `verify` and `fix --verify` share: the options that say what is run, the project, the bar, an orderly end."""

from __future__ import annotations

import contextlib
import shlex
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from perflint.cli import console
from perflint.errors import PerflintError
from perflint.verify.counting import SIMULATED
from perflint.verify.options import VerifyOptions, duration, threads_of

if TYPE_CHECKING:
    from perflint.finding import Finding
    from perflint.project.discovery import Discovery
    from perflint.verify.command import Command
    from perflint.verify.fixtrials import CallableWorkload, Project
    from perflint.verify.launch import Launcher
    from perflint.verify.measuring import Plan
    from perflint.verify.results import Machine

#: Loading a benchmark or asking for the device takes no longer than importing torch.
ASKING_SECONDS = 120.0

C = TypeVar("C", bound=Callable[..., Any])


def _duration(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
    try:
        return None if value is None else duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def workload_options(function: C) -> C:
    """The options whose values `options_from` takes by field name."""
    for option in reversed(
        (
            click.option(
                "--bench",
                metavar="TARGET",
                help=("Measure fixes with the callable package.module:name or file.py:name."),
            ),
            click.option("--command", "command", metavar="COMMAND", help="Measure fixes with this command."),
            click.option(
                "--metric", metavar="REGEX", help=("Compare this printed figure instead of the command's time.")
            ),
            click.option(
                "--higher-is-better/--lower-is-better",
                default=None,
                help="Whether a higher or lower --metric is better.",
            ),
            click.option("--result", metavar="REGEX", help="Pattern of printed text that no fix may change."),
            click.option(
                "--budget", callback=_duration, metavar="TIME", help="Time limit of one comparison (default: 60s)."
            ),
            click.option(
                "--timeout", callback=_duration, metavar="TIME", help="Time limit of one run (default: 300s)."
            ),
            click.option(
                "--device",
                metavar="DEVICE",
                help="cpu, cuda, cuda:1, mps, xpu, auto (the default), or simulated: count waits, launches, bytes.",
            ),
            click.option(
                "--threads",
                type=click.IntRange(0),
                metavar="N",
                help="Threads of torch, OpenMP and BLAS on both sides (default: OMP_NUM_THREADS, else 1; 0: theirs).",
            ),
            click.option("--rtol", type=click.FloatRange(0), help="Relative tolerance of results."),
            click.option("--atol", type=click.FloatRange(0), help="Absolute tolerance of results."),
        )
    ):
        function = option(function)
    return function


def workload_of(options: VerifyOptions, device: str) -> CallableWorkload | Command:
    """The user's workload. Raises PerflintError for a pattern or a command that does not read."""
    from perflint.verify.command import Command
    from perflint.verify.fixtrials import CallableWorkload
    from perflint.verify.metric import check_pattern

    if options.bench:
        return CallableWorkload(options.bench, device, options.rtol, options.atol)
    for pattern, name in ((options.metric, "--metric"), (options.result, "--result")):
        if pattern:
            check_pattern(pattern, name)
    try:
        words = tuple(shlex.split(options.command))
    except ValueError as error:
        raise PerflintError(f"--command: {error}") from error
    if not words:
        raise PerflintError("--command is empty")
    is_simulated = device == SIMULATED
    if is_simulated and options.metric:
        raise PerflintError("--metric needs timing, but --device simulated counts; give only one of them")
    return Command(
        words,
        options.metric,
        options.higher_is_better,
        options.result,
        options.rtol,
        options.atol,
        is_simulated=is_simulated,
    )


def plan_of(options: VerifyOptions) -> Plan:
    """How one comparison goes."""
    from perflint.verify.measuring import Plan

    return Plan(options.budget, options.timeout, options.precision, seed=options.seed, threads=threads_of(options))


def device_of(options: VerifyOptions, launcher: Launcher) -> tuple[str, Machine]:
    """The device's name for torch, and what it is. Raises PerflintError when there is none such."""
    from perflint.verify.benchmarks import machine
    from perflint.verify.processes import TrialError

    try:
        return machine(launcher, options.device, ASKING_SECONDS)
    except TrialError as error:
        raise PerflintError(f"--device: {error}") from error


def project_of(discovery: Discovery, findings: Sequence[Finding], link: tuple[str, ...] = ()) -> Project:
    """The tree around what was discovered, with the text of every file that has one of `findings`."""
    from perflint.project.discovery import common_folder
    from perflint.syntax.read import read_source
    from perflint.verify.fixtrials import Project

    root = discovery.root or common_folder([one.file for one in discovery.reported])
    sources = {path: read_source(discovery.file(path), path) for path in {finding.path for finding in findings}}
    return Project(root, Path.cwd(), sources, discovery.file, link)


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="perflint-verify-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Being asked to end is an interruption: what runs is ended with us."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    # A terminal that is closed says so by a signal of its own; `nohup` has it ignored, which stays.
    asked = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = {number: handler for number in asked if (handler := signal.getsignal(number)) != signal.SIG_IGN}
    try:
        for number in before:
            signal.signal(number, interrupt)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str, float], None]]:
    """A bar on standard error where that is a terminal: how much of its budget the comparison has used."""
    if not console.is_terminal(sys.stderr):
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from perflint.verify.tables import harmless

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        shown = ""

        def update(name: str, share: float) -> None:
            nonlocal shown
            if name != shown:
                shown = name
                bar.reset(task, description=harmless(name), total=1.0)
            bar.update(task, completed=share)

        yield update
