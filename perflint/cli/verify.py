"""`perflint verify`."""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perflint.cli import console, project
from perflint.cli.app import CLEAN, FAULT, FOUND, INTERRUPTED
from perflint.errors import PerflintError
from perflint.finding import Applicability, Finding
from perflint.verify.options import VerifyOptions, duration, options_from
from perflint.verify.results import Machine, Result, Verdict

if TYPE_CHECKING:
    from perflint.discovery import Discovery
    from perflint.rule import Rule
    from perflint.settings import Settings
    from perflint.verify.launch import Launcher
    from perflint.verify.measuring import Plan

#: Loading a benchmark or asking for the device takes no longer than importing torch.
_ASKING_SECONDS = 120.0


def _duration(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
    try:
        return None if value is None else duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command("verify")
@click.argument("paths", nargs=-1)
@click.option("--rule", metavar="RULES", multiple=True, help="Run the benchmarks of these rules: codes or names.")
@click.option("--all", "every", is_flag=True, help="Run the benchmarks of all rules.")
@click.option("--size", metavar="SIZE", multiple=True, help="Only this size of a benchmark.")
@click.option("--bench", metavar="TARGET", help="Try the fixes in PATHS under package.module:name or file.py:name.")
@click.option("--command", "command_line", metavar="COMMAND", help="Try the fixes in PATHS under this command.")
@click.option("--metric", metavar="REGEX", help="Measure the command by this figure that it prints, not by its time.")
@click.option("--higher-is-better/--lower-is-better", default=None, help="Which way the figure of --metric is good.")
@click.option("--result", metavar="REGEX", help="What the command prints that no fix may change.")
@click.option("--unsafe", is_flag=True, help="Try fixes that need a person's look too.")
@click.option("--budget", callback=_duration, metavar="TIME", help="Time for one comparison (default: 60s).")
@click.option("--timeout", callback=_duration, metavar="TIME", help="Time for one run of a workload (default: 300s).")
@click.option("--device", metavar="DEVICE", help="cpu, cuda, cuda:1, mps, xpu or auto, the default.")
@click.option("--rtol", type=click.FloatRange(0), help="How far results may differ, relatively.")
@click.option("--atol", type=click.FloatRange(0), help="How far results may differ, absolutely.")
@click.option(
    "--output-format", type=click.Choice(("table", "json", "markdown")), default="table", help="How to print."
)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the results to this file.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw the ratios: FILE.svg or FILE.png.")
@click.option("--store/--no-store", default=True, help="Keep what benchmarks of rules gave for 'perflint explain'.")
@click.option("--store-to", type=click.Path(path_type=Path, file_okay=False), help="Keep it in this folder instead.")
@click.option("--self-test", type=click.IntRange(1), metavar="N", help="Measure how often verify itself is wrong.")
@click.option("--color/--no-color", default=None, help="Colour, by default on a terminal only.")
@project.selection_options
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def command(
    paths: tuple[str, ...],
    rule: tuple[str, ...],
    size: tuple[str, ...],
    command_line: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    confidence: str | None,
    config: Path | None,
    output_format: str,
    output: Path | None,
    plot: Path | None,
    store_to: Path | None,
    self_test: int | None,
    *,
    every: bool,
    unsafe: bool,
    extra: bool,
    store: bool,
    color: bool | None,
    debug: bool,
    **given: Any,
) -> int:
    """Measure whether fixes pay, on this machine.

    With --rule or --all, the rules' own benchmarks. With PATHS and --bench or --command, every fix in PATHS alone and
    all together, under your own code in a copy of the tree; your files are not touched.

    Exit code 0: measured; 1: a fix in PATHS is slower or changes the result; 2: a workload or the input was at fault.
    """
    from perflint.verify.launch import require_extra
    from perflint.verify.plot import write_plot

    settings = project.settings_for(paths or (".",), config, confidence)
    options = options_from(settings, {**given, "command": command_line})
    if self_test is None and not (paths or rule or every):
        raise click.UsageError("say what to measure: --rule RULE, --all, or PATHS with --bench or --command")
    if paths and not (options.bench or options.command):
        raise click.UsageError("PATHS need a workload: --bench package.module:name or --command '...'")
    if not paths and (given["bench"] or command_line):
        raise click.UsageError("--bench and --command try the fixes in PATHS, which are missing")
    require_extra()
    if plot is not None and plot.suffix.lower() not in {".svg", ".png"}:
        raise PerflintError(f"--plot: {plot} must end in .svg or .png")
    session = _Session(options, sizes=project.split(size))
    interrupted = False
    with _ended_by_signals(), _progress() as session.progress:
        try:
            if self_test is not None:
                return _self_test(session, self_test)
            if rule or every:
                session.benchmarks(_rules(project.split(rule)))
            if paths:
                session.fixes(_found(paths, settings, select, ignore, options.link, extra=extra, unsafe=unsafe))
        except KeyboardInterrupt:
            interrupted = True
    text = session.shown(output_format, color=output is None and console.wants_color(color))
    if output is None:
        console.write(text)
    else:
        console.write_file(output, text)
    if plot is not None and session.machine is not None:
        write_plot(plot, session.machine, session.results)
    if store:
        _keep(session, store_to, settings)
    if interrupted:
        console.complain("interrupted; this is what was measured so far")
        return INTERRUPTED
    if debug:
        sys.stderr.write("".join(f"{trace}\n" for trace in session.traces))
    return session.code()


@dataclass
class _Session:
    """What is measured, and what came of it so far."""

    options: VerifyOptions
    sizes: tuple[str, ...] = ()
    progress: Callable[[str, float], None] = lambda *_: None
    machine: Machine | None = None
    device: str = "cpu"
    results: list[Result] = field(default_factory=list)
    #: Rows of rules' own benchmarks, which are worth keeping; those of fixes hold for the user's workload only.
    kept: list[Result] = field(default_factory=list)
    fixes_tried: list[Result] = field(default_factory=list)
    traces: list[str] = field(default_factory=list)

    @property
    def plan(self) -> Plan:
        from perflint.verify.measuring import Plan

        options = self.options
        return Plan(options.budget, options.timeout, options.precision, seed=options.seed)

    def open(self, launcher: Launcher) -> None:
        """Find the device. Raises PerflintError when there is none such."""
        from perflint.verify.benchmarks import machine
        from perflint.verify.launch import TrialError

        try:
            self.device, self.machine = machine(launcher, self.options.device, _ASKING_SECONDS)
        except TrialError as error:
            raise PerflintError(f"--device: {error}") from error

    def benchmarks(self, rules: Sequence[type[Rule]]) -> None:
        from perflint.verify.benchmarks import benchmark_file, describe, measure
        from perflint.verify.launch import Launcher, TrialError
        from perflint.verify.measuring import Row

        without = []
        with _folder() as folder, Launcher(folder) as launcher:
            self.open(launcher)
            for rule in rules:
                with benchmark_file(rule) as file:
                    if file is None:
                        without.append(rule.code)
                        continue
                    try:
                        benchmark = describe(launcher, rule.code, file, self.device, _ASKING_SECONDS)
                        sizes = [name for name in benchmark.sizes if not self.sizes or name in self.sizes]
                        for result in measure(
                            launcher, benchmark, self.plan, folder, sizes, progress=self._named(rule)
                        ):
                            self.results.append(result)
                            self.kept.append(result)
                    except TrialError as error:
                        self.results.append(Row(rule.code, rule.name).lacking(str(error), failed=True))
        if without:
            console.complain(f"no benchmark: {', '.join(without)}")

    def _named(self, rule: type[Rule]) -> Callable[[str, float], None]:
        return lambda size, share: self.progress(f"{rule.code} {size}", share)

    def fixes(self, found: _Found) -> None:
        """Every fix alone, and all together where there are several."""
        from perflint.verify.fixtrials import fix_trials
        from perflint.verify.launch import Launcher

        with _folder() as folder, Launcher(folder) as launcher:
            self.open(launcher)
        if not found.findings:
            console.complain("no fix to try in these paths")
            return
        workload = workload_of(self.options, self.device)
        console.complain(f"trying {len(found.findings)} fixes in a copy of {found.project.root}")
        with fix_trials(found.project, workload, self.plan, self.progress) as trials:
            tries = [[finding] for finding in found.findings]
            if len(tries) > 1:
                tries.append(list(found.findings))
            for findings in tries:
                result = trials.measure(findings)
                self.results.append(result)
                self.fixes_tried.append(result)

    def shown(self, output_format: str, *, color: bool) -> str:
        from perflint.verify.results import to_json
        from perflint.verify.tables import markdown, table

        machine = self.machine or Machine("", "", "")
        if output_format == "json":
            now = datetime.now(timezone.utc).isoformat(timespec="seconds")
            return json.dumps(to_json(machine, self.results, memory=self.memory(), date=now), indent=2) + "\n"
        if output_format == "markdown":
            return markdown(machine, self.results)
        return table(machine, self.results, width=console.width(), color=color)

    def memory(self) -> str:
        """What the figures of memory are."""
        from perflint.verify import device

        if self.options.command and self.fixes_tried:
            return device.MEMORY_OF_COMMAND
        return device.MEMORY_ON_HOST if self.device == "cpu" else device.MEMORY_ON_DEVICE

    def code(self) -> int:
        if any(result.failed for result in self.results):
            return FAULT
        bad = {Verdict.SLOWER, Verdict.DIFFERENT_RESULT}
        return FOUND if any(result.verdict in bad for result in self.fixes_tried) else CLEAN


def workload_of(options: VerifyOptions, device: str) -> Any:
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
    return Command(words, options.metric, options.higher_is_better, options.result, options.rtol, options.atol)


@dataclass(frozen=True)
class _Found:
    """Findings whose fixes are to be tried, and where."""

    project: Any
    findings: tuple[Finding, ...]


def _found(
    paths: Sequence[str],
    settings: Settings,
    select: Sequence[str],
    ignore: Sequence[str],
    link: tuple[str, ...],
    *,
    extra: bool,
    unsafe: bool,
) -> _Found:
    from perflint.run import Options, check

    discovery, _ = project.find(paths, None, settings)
    chosen = project.choose(settings, select, ignore, extra=extra)
    run = Options(
        settings=settings,
        rules=[rule() for rule in chosen.running],
        jobs=settings.jobs or project.default_jobs(),
        everything=len(chosen.running) == len(chosen.known),
    )
    report = check(discovery, run)
    for problem in report.errors:
        console.complain(f"{problem.path}: {problem.message}")
    weakest = Applicability.UNSAFE if unsafe else Applicability.SAFE
    findings = tuple(
        finding
        for finding in report.findings
        if finding.fix is not None and finding.fix.applicability >= weakest and finding.cell is None
    )
    return _Found(project_of(discovery, findings, link), findings)


def project_of(discovery: Discovery, findings: Sequence[Finding], link: tuple[str, ...] = ()) -> Any:
    """The tree around what was discovered, with the text of every file that has one of `findings`."""
    from perflint.discovery import common_folder
    from perflint.source.read import read_source
    from perflint.verify.fixtrials import Project

    root = discovery.root or common_folder([one.file for one in discovery.reported])
    sources = {path: read_source(discovery.file(path), path) for path in {finding.path for finding in findings}}
    return Project(root, Path.cwd(), sources, discovery.file, link)


def _rules(words: Sequence[str]) -> list[type[Rule]]:
    """The rules named, all when none is. Raises SettingsError for a word that names none."""
    from perflint.registry import load_rules
    from perflint.settings import check_selector, rank_of

    rules = load_rules()
    for word in words:
        check_selector(word, rules, "--rule")
    return [
        rule for rule in rules if not words or any(rank_of(word, rule.code, rule.name) is not None for word in words)
    ]


def _keep(session: _Session, store_to: Path | None, settings: Settings) -> None:
    from perflint.discovery import project_root
    from perflint.verify import evidence

    root = project_root([Path.cwd()]) or settings.root
    folder = store_to or (evidence.folder_of(root) if root is not None else None)
    if folder is None or session.machine is None:
        return
    try:
        evidence.store(folder, session.machine, session.kept, memory=session.memory())
    except PerflintError as error:
        console.complain(str(error))


def _self_test(session: _Session, runs: int) -> int:
    from perflint.verify.launch import Launcher
    from perflint.verify.selftest import self_test

    with _folder() as folder, Launcher(folder) as launcher:
        session.open(launcher)
        for line in self_test(launcher, folder, session.plan, session.device, runs, session.progress):
            console.write(f"{line}\n")
    return CLEAN


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="perflint-verify-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Being asked to end is an interruption: what runs is ended with us."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str, float], None]]:
    """A bar on standard error where that is a terminal: how much of its budget the comparison has used."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        shown = ""

        def update(name: str, share: float) -> None:
            nonlocal shown
            if name != shown:
                shown = name
                bar.reset(task, description=console_safe(name), total=1.0)
            bar.update(task, completed=share)

        yield update


def console_safe(text: str) -> str:
    from perflint.verify.tables import harmless

    return harmless(text)
