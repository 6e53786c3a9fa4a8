"""`perflint verify`."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perflint.cli import console, fixing, project, verifying
from perflint.cli.app import CLEAN, FAULT, FOUND, INTERRUPTED
from perflint.errors import PerflintError
from perflint.finding import Applicability, Finding
from perflint.report.counts import many
from perflint.verify.counting import SIMULATED
from perflint.verify.options import VerifyOptions, options_from
from perflint.verify.results import Machine, Result, Verdict

if TYPE_CHECKING:
    from perflint.project.settings import Settings
    from perflint.rule_api.rule import Rule
    from perflint.verify.benchmarks import Benchmark
    from perflint.verify.fixtrials import Project
    from perflint.verify.launch import Launcher
    from perflint.verify.measuring import Plan


@click.command("verify")
@click.argument("paths", nargs=-1)
@click.option("--rule", metavar="RULES", multiple=True, help="Run the benchmarks of these rules (codes or names).")
@click.option("--all", "every", is_flag=True, help="Run the benchmarks of all rules.")
@click.option("--size", metavar="SIZE", multiple=True, help="Run only this benchmark size.")
@verifying.workload_options
@click.option("--unsafe", is_flag=True, help="Measure unsafe fixes, too.")
@click.option(
    "--output-format", type=click.Choice(("table", "json", "markdown")), default="table", help="Output format."
)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the results to this file.")
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), help="Plot the ratios to FILE.svg or FILE.png."
)
@click.option("--store/--no-store", default=True, help="Store benchmark results for 'perflint explain'.")
@click.option("--store-to", type=click.Path(path_type=Path, file_okay=False), help="Store them in this folder instead.")
@click.option(
    "--self-test",
    type=click.IntRange(1),
    metavar="N",
    help=(
        "Measure the error rate of verify itself: N runs of a planted slow-down, or, with --rule or --all, of "
        "each benchmark against itself."
    ),
)
@click.option("--color/--no-color", default=None, help="Colored output. Default: on a terminal only.")
@project.selection_options
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def command(
    paths: tuple[str, ...],
    rule: tuple[str, ...],
    size: tuple[str, ...],
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
    """Measure the speed-up of fixes on this machine.

    --rule and --all run the benchmarks of rules. PATHS with --bench or --command measures every fix in PATHS, alone and
    all together, with your own workload in a copy of the tree. Your files are not changed.

    Exit code 0: every fix in PATHS is faster or makes no difference; 1: a fix is slower, changes the result, is not
    reached by the workload, or stays undecided; 2: an error in a workload or in the input.
    """
    from perflint.verify.launch import require_extra

    settings = project.settings_for(paths or (".",), config, confidence)
    options = options_from(settings, given)
    if self_test is None and not (paths or rule or every):
        raise click.UsageError("nothing to measure: give --rule RULE, --all, or PATHS with --bench or --command")
    _expect_workload_with_paths(paths, options, given)
    if options.device == SIMULATED and (rule or every or self_test is not None):
        raise click.UsageError("--device simulated counts instead of timing: give PATHS and a workload")
    require_extra()
    if plot is not None and plot.suffix.lower() not in {".svg", ".png"}:
        raise PerflintError(f"--plot: {plot} must end in .svg or .png")
    session = _Session(options, sizes=size)
    interrupted = False
    with verifying.ended_by_signals(), verifying.progress() as session.progress:
        try:
            if self_test is not None:
                return _self_test(session, self_test, _rules(project.split(rule)) if rule or every else None)
            if rule or every:
                session.benchmarks(_rules(project.split(rule)))
            if paths:
                session.fixes(_found(paths, settings, select, ignore, options.link, extra=extra, unsafe=unsafe))
        except KeyboardInterrupt:
            interrupted = True
    _deliver(session, output_format, output, plot, color=color)
    if store:
        _keep(session, store_to, settings)
    if interrupted:
        console.complain("interrupted; results so far")
        return INTERRUPTED
    if debug:
        sys.stderr.write("".join(f"{trace}\n" for trace in session.traces))
    return session.code()


def _expect_workload_with_paths(paths: Sequence[str], options: VerifyOptions, given: Mapping[str, Any]) -> None:
    """Raises UsageError where one is missing."""
    if paths and not (options.bench or options.command):
        raise click.UsageError("PATHS need a workload: --bench package.module:name or --command '...'")
    if not paths and (given["bench"] or given["command"]):
        raise click.UsageError("--bench and --command need PATHS")


def _deliver(
    session: _Session, output_format: str, output: Path | None, plot: Path | None, *, color: bool | None
) -> None:
    """Print or write the results, and draw them."""
    from perflint.verify.plot import write_plot

    text = session.shown(output_format, color=output is None and console.wants_color(color))
    if output is None:
        console.write(text)
    else:
        console.write_file(output, text)
    if plot is not None and session.machine is not None:
        write_plot(plot, session.machine, session.results)


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
        return verifying.plan_of(self.options)

    def open(self, launcher: Launcher) -> None:
        """Find the device. Raises PerflintError when there is none such."""
        self.device, self.machine = verifying.device_of(self.options, launcher)

    def benchmarks(self, rules: Sequence[type[Rule]]) -> None:
        from perflint.verify.benchmarks import benchmark_file, describe, measure
        from perflint.verify.launch import Launcher
        from perflint.verify.measuring import Interrupted, Row
        from perflint.verify.processes import TrialError

        without = []
        known: dict[str, None] = {}
        with verifying.folder() as folder, Launcher(folder, threads=self.plan.threads) as launcher:
            self.open(launcher)
            for rule in rules:
                with benchmark_file(rule) as file:
                    if file is None:
                        without.append(rule.code)
                        continue
                    try:
                        benchmark = describe(launcher, rule.code, file, self.device, verifying.ASKING_SECONDS)
                        known |= dict.fromkeys(benchmark.sizes)
                        sizes = [name for name in benchmark.sizes if not self.sizes or name in self.sizes]
                        for result in measure(
                            launcher, benchmark, self.plan, folder, sizes, progress=self._named(rule)
                        ):
                            self.results.append(result)
                            self.kept.append(result)
                    except Interrupted as interrupted:
                        self.results.append(interrupted.result)
                        raise
                    except TrialError as error:
                        self.results.append(Row(rule.code, rule.name).lacking(str(error), failed=True))
        if without:
            console.complain(f"no benchmark: {', '.join(without)}")
        if self.sizes and known and not any(name in known for name in self.sizes):
            there = ", ".join(map(repr, known))
            raise PerflintError(f"--size: no selected benchmark has this size; available: {there}")

    def benchmarks_of(
        self, rules: Sequence[type[Rule]], launcher: Launcher, files: contextlib.ExitStack
    ) -> list[Benchmark]:
        """Those that this machine can measure. Their files are there for as long as `files`."""
        from perflint.verify.benchmarks import benchmark_file, describe

        paths = [(rule, files.enter_context(benchmark_file(rule))) for rule in rules]
        found = [
            describe(launcher, rule.code, path, self.device, verifying.ASKING_SECONDS) for rule, path in paths if path
        ]
        return [benchmark for benchmark in found if not benchmark.lacking]

    def _named(self, rule: type[Rule]) -> Callable[[str, float], None]:
        return lambda size, share: self.progress(f"{rule.code} {size}", share)

    def fixes(self, found: _Found) -> None:
        """Every fix alone, and all together where there are several."""
        from perflint.verify.fixtrials import fix_trials
        from perflint.verify.launch import Launcher
        from perflint.verify.measuring import Interrupted

        if not found.findings:
            console.complain("no fix to measure in these paths")
            with verifying.folder() as folder, Launcher(folder, threads=self.plan.threads) as launcher:
                self.open(launcher)
            return
        console.complain(f"measuring {many(len(found.findings), 'fix')} in a copy of {found.project.root}")
        with fix_trials(found.project, self.plan, self.progress) as trials:
            self.open(trials.launcher)
            workload = verifying.workload_of(self.options, self.device)
            trials.check(workload, found.findings)
            tries = [[finding] for finding in found.findings]
            if len(tries) > 1:
                tries.append(list(found.findings))
            for findings in tries:
                try:
                    result = trials.measure(workload, findings)
                except Interrupted as interrupted:
                    self.results.append(interrupted.result)
                    raise
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
        return table(machine, self.results, color=color)

    def memory(self) -> str:
        """What the figures of memory are."""
        from perflint.verify import device

        if self.options.command and self.fixes_tried:
            return device.MEMORY_OF_COMMAND
        return device.MEMORY_ON_HOST if self.device == "cpu" else device.MEMORY_ON_DEVICE

    def code(self) -> int:
        if any(result.failed for result in self.results):
            return FAULT
        bad = {Verdict.SLOWER, Verdict.DIFFERENT_RESULT, Verdict.NOT_REACHED, Verdict.UNDECIDED, Verdict.MORE}
        return FOUND if any(result.verdict in bad for result in self.fixes_tried) else CLEAN


@dataclass(frozen=True)
class _Found:
    """Findings whose fixes are to be tried, and where."""

    project: Project
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
    from perflint.engine import check

    discovery, _ = project.find(paths, None, settings)
    chosen = project.choose(discovery, settings, select, ignore, extra=extra)
    report = check(discovery, project.options_for(settings, chosen))
    for problem in report.errors:
        console.complain(fixing.described(problem))
    weakest = Applicability.UNSAFE if unsafe else Applicability.SAFE
    findings = tuple(
        finding
        for finding in report.findings
        if finding.fix is not None and finding.fix.applicability >= weakest and finding.cell is None
    )
    return _Found(verifying.project_of(discovery, findings, link), findings)


def _rules(words: Sequence[str]) -> list[type[Rule]]:
    """The rules named, all when none is. Raises SettingsError for a word that names none."""
    from perflint.project.selection import check_selector, rank_of
    from perflint.rule_api.registry import load_rules

    rules = load_rules()
    for word in words:
        check_selector(word, rules, "--rule")
    return [
        rule for rule in rules if not words or any(rank_of(word, rule.code, rule.name) is not None for word in words)
    ]


def _keep(session: _Session, store_to: Path | None, settings: Settings) -> None:
    from perflint.project.discovery import project_root
    from perflint.verify import evidence

    root = project_root([Path.cwd()]) or settings.root
    folder = store_to or (evidence.folder_of(root) if root is not None else None)
    if folder is None or session.machine is None:
        return
    try:
        evidence.store(folder, session.machine, session.kept, memory=session.memory())
    except PerflintError as error:
        console.complain(str(error))


def _self_test(session: _Session, runs: int, rules: Sequence[type[Rule]] | None) -> int:
    from perflint.verify.launch import Launcher
    from perflint.verify.selftest import against_itself, self_test

    with (
        verifying.folder() as folder,
        Launcher(folder, threads=session.plan.threads) as launcher,
        contextlib.ExitStack() as files,
    ):
        session.open(launcher)
        common = (launcher, folder, session.plan)
        lines = (
            self_test(*common, session.device, runs, session.progress)
            if rules is None
            else against_itself(*common, session.benchmarks_of(rules, launcher, files), runs, session.progress)
        )
        for line in lines:
            console.write(f"{line}\n")
            sys.stdout.flush()
    return CLEAN
