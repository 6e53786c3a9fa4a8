"""Workloads 2 and 3: fixes tried, one by one and together, under a callable or a command of the user's."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from perflint.errors import PerflintError
from perflint.finding import Finding
from perflint.fixes.apply import apply_fixes
from perflint.syntax.file import SourceFile
from perflint.verify.benchmarks import LiveRun
from perflint.verify.command import Command, CommandSide
from perflint.verify.launch import Launcher
from perflint.verify.measuring import Facts, Plan, Row, Run, Side
from perflint.verify.overlay import Overlay
from perflint.verify.processes import TrialError
from perflint.verify.reach import Changed, Lines, Tracer
from perflint.verify.reach import changed as changed_lines
from perflint.verify.results import Result

#: How the row of all fixes at once is called.
TOGETHER = "together"


@dataclass(frozen=True, slots=True)
class CallableWorkload:
    """A callable of the user's: `package.module:name` or `file.py:name`, called without arguments."""

    target: str
    device: str = "cpu"
    rtol: float = 1e-5
    atol: float = 1e-8


@dataclass(frozen=True)
class Project:
    """The tree that fixes are tried in. `files` says where a file shown in findings lies, `folder` is where the
    workload runs, `link` names folders that are not copied."""

    root: Path
    folder: Path
    sources: Mapping[str, SourceFile]
    files: Callable[[str], Path]
    link: tuple[str, ...] = ()

    def changes(self, findings: Iterable[Finding]) -> dict[str, bytes]:
        """New content by path below the root, when the fixes of `findings` are made. Raises PerflintError."""
        return {self._below(path): self.sources[path].encode(text) for path, text in self._fixed(findings).items()}

    def texts(self, findings: Iterable[Finding]) -> dict[str, tuple[str, str]]:
        """Text before and after, by path below the root. Raises PerflintError."""
        fixed = self._fixed(findings)
        return {self._below(path): (self.sources[path].text, text) for path, text in fixed.items()}

    def _fixed(self, findings: Iterable[Finding]) -> dict[str, str]:
        wanted: dict[str, list[Finding]] = {}
        for finding in findings:
            wanted.setdefault(finding.path, []).append(finding)
        changed = {}
        for path, those in wanted.items():
            source = self.sources[path]
            applied = apply_fixes(source, [finding.fix for finding in those if finding.fix is not None])
            if not applied.taken:
                raise PerflintError(f"{path}: the fix cannot be made")
            changed[path] = applied.text
        return changed

    def _below(self, path: str) -> str:
        try:
            return self.files(path).resolve().relative_to(self.root.resolve()).as_posix()
        except ValueError:
            raise PerflintError(f"{path} is outside of the project {self.root}") from None


@dataclass(frozen=True, slots=True)
class CallableSide:
    """The callable, with the sources of one copy."""

    launcher: Launcher
    workload: CallableWorkload
    overlay: Overlay
    inside: Path
    folder: Path
    changed: tuple[str, ...] = ()
    #: Lines to look for in the untimed runs.
    watched: Lines = field(default_factory=dict)

    @property
    def is_single(self) -> bool:
        return False

    def start(self, plan: Plan, reference: Path | None, *, keeps: bool) -> LiveRun:
        self.overlay.restore()
        tracer = Tracer(self.folder, self.overlay.tree, self.watched) if reference is not None else None
        live = self.launcher.open(
            {
                "kind": "callable",
                "target": self.workload.target,
                "device": self.workload.device,
                "rtol": self.workload.rtol,
                "atol": self.workload.atol,
                "origin": str(self.overlay.origin),
                "tree": str(self.overlay.tree),
                "folder": str(self.overlay.tree / self.inside),
                "changed": list(self.changed),
                "seed": plan.seed,
                "block": plan.block,
                "threads": plan.threads,
                "trace": {**tracer.request, "environment": tracer.environment()} if tracer is not None else None,
                "reference": str(reference) if reference else None,
                "keeps": keeps,
            },
            plan.timeout,
        )
        reply = live.reply(plan.timeout)
        notes = []
        if plan.threads is not None and reply["threads"] != plan.threads:
            notes.append(f"the workload itself sets the number of threads to {reply['threads']}")
        return LiveRun(live, plan, tuple(notes), tracer.seen() if tracer is not None else None)


@dataclass
class FixTrials:
    """Measures sets of fixes. Made by `fix_trials`."""

    project: Project
    plan: Plan
    launcher: Launcher
    folder: Path
    before: Overlay
    after: Overlay
    progress: Callable[[str, float], None] = field(default=lambda *_: None)
    #: What the tree as it is gave.
    known: Facts | None = None

    @property
    def reference(self) -> Path:
        return self.folder / "reference"

    def check(self, workload: CallableWorkload | Command, findings: Sequence[Finding]) -> None:
        """Run the workload once on the tree as it is, and keep its result. Raises WorkloadError, which says all."""
        self.known = None
        watched: dict[str, frozenset[int]] = {}
        for finding in findings:
            with contextlib.suppress(PerflintError):  # told where the fix is tried
                for path, lines in self._change([finding]).before.items():
                    watched[path] = watched.get(path, frozenset()) | lines
        try:
            with self._side(workload, self.before, (), watched).start(self.plan, self.reference, keeps=True) as running:
                self.known = running.facts
        except TrialError as error:
            said = error.trace.replace(str(self.before.tree), str(self.before.origin))
            raise WorkloadError(_name(workload), str(error), said) from error

    def measure(self, workload: CallableWorkload | Command, findings: Sequence[Finding]) -> Result:
        """The tree as it is against the tree with the fixes of all `findings`. Never raises for the workload."""
        row = _row(workload, findings)
        try:
            changes = self.project.changes(findings)
            change = self._change(findings)
        except PerflintError as error:
            return row.lacking(str(error), failed=True)
        self.after.change(changes)
        sides = (
            self._side(workload, self.before, (), change.before),
            self._side(workload, self.after, tuple(changes), change.after),
        )

        def report(share: float) -> None:
            self.progress(f"{row.code} {row.size}", share)

        return Run(row, sides, self.plan, self.reference, report, known=self.known, change=change).result()

    def _change(self, findings: Sequence[Finding]) -> Changed:
        return changed_lines(self.project.texts(findings))

    def _side(
        self, workload: CallableWorkload | Command, overlay: Overlay, changed: tuple[str, ...], watched: Lines
    ) -> Side:
        inside = self.project.folder.resolve().relative_to(self.project.root.resolve())
        if isinstance(workload, Command):
            return CommandSide(workload, overlay, inside, self.folder, watched)
        return CallableSide(self.launcher, workload, overlay, inside, self.folder, changed, watched)


class WorkloadError(PerflintError):
    """The workload fails on the tree as it is: no fix can be tried. The message holds what the workload said."""

    def __init__(self, name: str, reason: str, said: str) -> None:
        """`said` is a traceback or the end of what the workload printed."""
        shown = f"{said.rstrip()}\n" if said.strip() else ""
        super().__init__(f"{shown}the workload {name!r} fails without any fix, so none was measured: {reason}")


def _name(workload: CallableWorkload | Command) -> str:
    return workload.target if isinstance(workload, CallableWorkload) else " ".join(workload.words)


def _row(workload: CallableWorkload | Command, findings: Sequence[Finding]) -> Row:
    name = _name(workload)
    if len(findings) == 1:
        return Row(findings[0].code, name, f"{findings[0].path}:{findings[0].span.line}")
    codes = sorted({finding.code for finding in findings})
    return Row(" + ".join(codes), name, f"{len(findings)} fixes {TOGETHER}")


@contextmanager
def fix_trials(
    project: Project,
    plan: Plan,
    progress: Callable[[str, float], None] = lambda *_: None,
) -> Iterator[FixTrials]:
    """Copies of the tree, for as long as the context lasts. Raises PerflintError when it cannot be copied."""
    if not project.folder.resolve().is_relative_to(project.root.resolve()):
        raise PerflintError(f"run perflint inside the project {project.root}, so that the workload can run there")
    with tempfile.TemporaryDirectory(prefix="perflint-verify-", ignore_cleanup_errors=True) as name:
        # The real path: what a workload says about its own files must begin with it.
        folder = Path(name).resolve()
        root = project.root.resolve()
        overlays = [Overlay(root, folder / side / (root.name or "tree"), project.link) for side in ("a", "b")]
        for overlay in overlays:
            overlay.copy()
        with Launcher(folder, threads=plan.threads) as launcher:
            yield FixTrials(project, plan, launcher, folder, overlays[0], overlays[1], progress)
