"""Workloads 2 and 3: fixes tried, one by one and together, under a callable or a command of the user's."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from perflint.errors import PerflintError
from perflint.finding import Finding
from perflint.fixes.apply import apply_fixes
from perflint.source.file import SourceFile
from perflint.verify.benchmarks import LiveRun
from perflint.verify.command import Command, CommandSide
from perflint.verify.launch import Launcher
from perflint.verify.measuring import Plan, Row, Run, Side
from perflint.verify.overlay import Overlay
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
        wanted: dict[str, list[Finding]] = {}
        for finding in findings:
            wanted.setdefault(finding.path, []).append(finding)
        changed = {}
        for path, those in wanted.items():
            source = self.sources[path]
            applied = apply_fixes(source, [finding.fix for finding in those if finding.fix is not None])
            if not applied.taken:
                raise PerflintError(f"{path}: the fix cannot be made")
            changed[self._below(path)] = source.encode(applied.text)
        return changed

    def _below(self, path: str) -> str:
        try:
            return self.files(path).resolve().relative_to(self.root.resolve()).as_posix()
        except ValueError:
            raise PerflintError(f"{path} lies outside the project {self.root}") from None


@dataclass(frozen=True, slots=True)
class CallableSide:
    """The callable, with the sources of one copy."""

    launcher: Launcher
    workload: CallableWorkload
    overlay: Overlay
    inside: Path
    changed: tuple[str, ...] = ()

    @property
    def is_single(self) -> bool:
        return False

    def start(self, plan: Plan, reference: Path | None, *, keeps: bool) -> LiveRun:
        self.overlay.restore()
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
                "reference": str(reference) if reference else None,
                "keeps": keeps,
            },
            plan.timeout,
        )
        reply = live.reply(plan.timeout)
        notes = [f"the workload never loads {path}" for path in reply.get("unused", ())]
        if reply.get("equal") is None and keeps:
            notes.append("results not compared: the workload returns nothing to compare")
        return LiveRun(live, plan, tuple(notes))


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

    def measure(self, workload: CallableWorkload | Command, findings: Sequence[Finding]) -> Result:
        """The tree as it is against the tree with the fixes of all `findings`. Never raises for the workload."""
        row = _row(workload, findings)
        try:
            changes = self.project.changes(findings)
        except PerflintError as error:
            return row.lacking(str(error), failed=True)
        self.after.change(changes)
        sides = (self._side(workload, self.before, ()), self._side(workload, self.after, tuple(changes)))

        def report(share: float) -> None:
            self.progress(f"{row.code} {row.size}", share)

        return Run(row, sides, self.plan, self.folder / "reference", report).result()

    def _side(self, workload: CallableWorkload | Command, overlay: Overlay, changed: tuple[str, ...]) -> Side:
        inside = self.project.folder.resolve().relative_to(self.project.root.resolve())
        if isinstance(workload, Command):
            return CommandSide(workload, overlay, inside, self.folder)
        return CallableSide(self.launcher, workload, overlay, inside, changed)


def _row(workload: CallableWorkload | Command, findings: Sequence[Finding]) -> Row:
    name = workload.target if isinstance(workload, CallableWorkload) else " ".join(workload.words)
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
        with Launcher(folder) as launcher:
            yield FixTrials(project, plan, launcher, folder, overlays[0], overlays[1], progress)
