"""Checks for an editor: open documents with their texts, the project around them from disk. Knows no protocol."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perflint.engine import Memory, Options, check_overlay, explain_heat
from perflint.engine.governing import governed
from perflint.errors import PerflintError, SourceError
from perflint.finding import Applicability, Finding, Fix, Problem, Report
from perflint.fixes.ignores import ignore_fixes
from perflint.fixes.rounds import fix_files
from perflint.project.discovery import Discovery, FoundFile, discover, display_path, project_root
from perflint.project.selection import Selection
from perflint.project.settings import Settings, load_settings
from perflint.rule_api.registry import load_rules
from perflint.rule_api.rule import Rule
from perflint.syntax.file import SourceFile

if TYPE_CHECKING:
    from perflint.observe.trace import Observation

_BLOCK = re.compile(r"\s*(?:async\s+)?(?:def|for|while)\b")


class CancelledError(Exception):
    """Nobody waits for the result any more."""


@dataclass(frozen=True, slots=True)
class Result:
    """What is found in one open document, and the text that was checked."""

    source: SourceFile
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class _Project:
    discovery: Discovery
    options: Options
    overlay: Mapping[str, str]


class Analyst:
    """Checks documents, remembering from one time to the next what it read of the files around them."""

    def __init__(self) -> None:
        self._memory = Memory()
        self._observed: tuple[tuple[Path, int, int], Observation] | None = None
        self._rules: list[type[Rule]] | None = None

    @property
    def rules(self) -> list[type[Rule]]:
        if self._rules is None:
            self._rules = list(load_rules())
        return self._rules

    def check(self, texts: Mapping[Path, str], cancelled: Callable[[], bool]) -> dict[Path, Result]:
        """Findings of all of `texts`, open documents by absolute path, each with its whole project around it.

        The text of a notebook is that of its module. A document that the configuration excludes has no findings.
        Raises PerflintError for a configuration that does not read, CancelledError as soon as `cancelled`.
        """
        results: dict[Path, Result] = {}
        for root, files in _by_project(texts).items():
            project = self._project(root, {file: texts[file] for file in files}, cancelled)
            report = self._with_evidence(check_overlay(project.discovery, project.options, project.overlay), project)
            for file in files:
                results[file] = _result(report, display_path(file), texts[file])
        return results

    def _with_evidence(self, report: Report, project: _Project) -> Report:
        """The report with what an observed run says, where the configuration names one that reads.

        An editor is told what is found without evidence as well: the file is often one that each machine makes.
        """
        settings = project.options.settings
        if settings.observed is None:
            return report
        from perflint.observe.join import join, text_on_disk, wanted_in

        observation = self._observation(settings.observed)
        if observation is None:
            return report
        rules = [type(rule) for rule in project.options.rules]

        def text_of(path: str) -> str | None:
            return project.overlay[path] if path in project.overlay else text_on_disk(path)

        return join(report, observation, rules, text_of, wanted_in(project.discovery, project.options)).report

    def _observation(self, file: Path) -> Observation | None:
        """What a file holds, read again when it has changed; None where it does not read."""
        from perflint.observe.reading import read

        try:
            status = file.stat()
            state = (file, status.st_mtime_ns, status.st_size)
            if self._observed is None or self._observed[0] != state:
                self._observed = (state, read(file))
        except (OSError, PerflintError):
            return None
        return self._observed[1]

    def fix_all(self, texts: Mapping[Path, str], file: Path, cancelled: Callable[[], bool]) -> str:
        """The text of one document with all safe fixes made, of a notebook its module's. Raises as `check` does."""
        root = project_root([file])
        project = self._project(root, texts, cancelled)
        path = display_path(file)
        only = dataclasses.replace(
            project.discovery,
            reported=tuple(one for one in project.discovery.reported if one.display == path),
            problems=(),
        )

        def recheck(overlay: Mapping[str, str]) -> Report:
            return check_overlay(only, project.options, {**project.overlay, **overlay})

        source = SourceFile(path, texts[file])
        findings = recheck({}).findings
        outcome = fix_files({path: source}, findings, recheck, lambda fix: fix.applicability is Applicability.SAFE)
        return source.raw_of(outcome.files[0].text) if outcome.files else source.text

    def heat(self, texts: Mapping[Path, str], file: Path, line: int, cancelled: Callable[[], bool]) -> str:
        """Why a line of a document is as hot as it is. Raises as `check` does."""
        project = self._project(project_root([file]), texts, cancelled)
        return explain_heat(project.discovery, project.options, display_path(file), line, overlay=project.overlay)

    def _project(self, root: Path | None, texts: Mapping[Path, str], cancelled: Callable[[], bool]) -> _Project:
        files = [file for file in texts if project_root([file]) == root]
        settings = load_settings(root or files[0].parent)
        discovery = _discovery(root, files, settings)
        selection = Selection(settings)
        selected = selection.resolve(self.rules)
        nested = governed(discovery, selection, self.rules)
        codes = frozenset(rule.code for rule in selected)
        running = codes.union(*(one.codes for one in nested.values()))

        def progress(_done: int, _total: int) -> None:
            if cancelled():
                raise CancelledError

        progress(0, 0)
        options = Options(
            settings=settings,
            rules=[rule() for rule in self.rules if rule.code in running],
            codes=codes,
            nested=nested,
            progress=progress,
            everything=len(selected) == len(self.rules),
            memory=self._memory,
        )
        return _Project(discovery, options, {display_path(file): texts[file] for file in files})


def _by_project(texts: Iterable[Path]) -> dict[Path | None, list[Path]]:
    grouped: dict[Path | None, list[Path]] = {}
    for file in texts:
        grouped.setdefault(project_root([file]), []).append(file)
    return grouped


def _discovery(root: Path | None, files: Sequence[Path], settings: Settings) -> Discovery:
    """The project, with the open documents to be reported: those it holds, and those not yet on disk."""
    found = [FoundFile(display_path(file), file) for file in files]
    if root is None:
        return Discovery(None, tuple(sorted(found)), tuple(sorted(found)))
    whole = discover([root], settings)
    known = {one.display for one in whole.analysed}
    reported = tuple(sorted(one for one in found if one.display in known or not one.file.exists()))
    analysed = tuple(sorted({*whole.analysed, *reported}))
    return Discovery(root, reported, analysed)


def _result(report: Report, path: str, text: str) -> Result:
    return Result(
        SourceFile(path, text),
        tuple(finding for finding in report.findings if finding.path == path),
        tuple(problem for problem in report.errors if problem.path == path),
    )


def begins_a_block(line: str) -> bool:
    """Whether a line is one whose heat is worth asking for: the beginning of a function or loop."""
    return _BLOCK.match(line) is not None


def silencing(source: SourceFile, finding: Finding) -> Fix | None:
    """The fix that silences one finding of `source` with a comment, None where there is no place for one."""
    inner = source.unplaced(finding)
    try:
        fix = ignore_fixes(source, [inner])[0]
    except SourceError:
        return None
    return source.placed(dataclasses.replace(inner, fix=fix)).fix
