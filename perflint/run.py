"""The pipeline: files -> summaries -> program -> findings. It reads files and runs rules, and prints nothing."""

from __future__ import annotations

import ast
import gc
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perflint.errors import SourceError
from perflint.facts.summary import Summary
from perflint.facts.survey import survey
from perflint.finding import Finding, Problem, Report, Silenced
from perflint.inspection import Inspector
from perflint.program.program import Program
from perflint.source.file import SourceFile
from perflint.source.parse import parse
from perflint.source.read import decode_source, read_bytes
from perflint.source.suppressions import Suppressions

if TYPE_CHECKING:
    from perflint.discovery import Discovery
    from perflint.rule import Rule
    from perflint.settings import Settings


@dataclass(frozen=True)
class Options:
    """How one run goes. `rules` are the selected rules, one instance each; `stdin` replaces the file of that name."""

    settings: Settings
    rules: Sequence[Rule]
    stdin: tuple[str, bytes] | None = None
    jobs: int = 1
    debug: bool = False
    progress: Callable[[int, int], None] | None = None
    cache: bool = True
    extra_rules: Sequence[Rule] = field(default_factory=tuple)


def check(discovery: Discovery, options: Options) -> Report:
    """Check the reported files of a project, knowing all analysed ones."""
    return check_overlay(discovery, options, {})


def check_overlay(discovery: Discovery, options: Options, overlay: Mapping[str, str]) -> Report:
    """As `check`, with texts by display path that stand in for what is on disk."""
    with _gc_paused():
        return _Run(discovery, options, overlay).report()


class _Run:
    def __init__(self, discovery: Discovery, options: Options, overlay: Mapping[str, str]) -> None:
        self.discovery = discovery
        self.options = options
        self.overlay = overlay
        self.problems: list[Problem] = list(discovery.problems)
        self.done = 0
        self.total = 0

    def report(self) -> Report:
        reported = {file.display: file for file in self.discovery.reported}
        analysed = {file.display: file for file in self.discovery.analysed} | reported
        self.total = len(analysed) + len(reported)
        summaries: dict[str, Summary] = {}
        sources: dict[str, SourceFile] = {}
        for display in analysed:
            loaded = self._survey(display, display in reported)
            if loaded is not None:
                summaries[display] = loaded[1]
                if display in reported:
                    sources[display] = loaded[0]
            self._progress()
        program = Program(summaries, self.options.settings.torch_version)
        inspector = Inspector(program, self.options.rules)
        extra = Inspector(program, self.options.extra_rules) if self.options.extra_rules else None
        findings: list[Finding] = []
        silenced: list[Silenced] = []
        texts: dict[str, str] = {}
        more = 0
        for display in sorted(sources):
            source = sources.pop(display)
            found, problems = self._inspect(inspector, source)
            self.problems += problems
            kept, quiet = self._suppress(source, found)
            if kept or quiet:
                texts[display] = source.text
            findings += kept
            silenced += quiet
            if extra is not None:
                more += len(self._suppress(source, self._inspect(extra, source)[0])[0])
            self._progress()
        return Report(
            findings=tuple(sorted(findings, key=lambda item: item.sort_key)),
            errors=tuple(sorted(self.problems, key=lambda item: (item.path, item.line or 0, item.message))),
            files=len(reported),
            texts=texts,
            silenced=tuple(silenced),
            extra=more if extra is not None else None,
        )

    def _survey(self, display: str, is_reported: bool) -> tuple[SourceFile, Summary] | None:
        try:
            source = self._source(display)
            module = parse(source)
        except SourceError as error:
            # A file that is only read for what it calls is its owner's business, not this run's.
            if is_reported:
                self.problems.append(Problem(display, error.message, error.line))
            return None
        try:
            return source, survey(module, source.lines)
        except RecursionError:
            if is_reported:
                self.problems.append(Problem(display, "nests too deep to be read"))
            return None

    def _source(self, display: str) -> SourceFile:
        if display in self.overlay:
            return SourceFile(display, self.overlay[display])
        stdin = self.options.stdin
        if stdin is not None and stdin[0] == display:
            return decode_source(stdin[1], display)
        return decode_source(read_bytes(self.discovery.file(display)), display)

    def _inspect(self, inspector: Inspector, source: SourceFile) -> tuple[list[Finding], list[Problem]]:
        try:
            return inspector.inspect(source)
        except RecursionError:
            return [], [Problem(source.path, "nests too deep to be inspected", detail=traceback.format_exc())]

    def _suppress(self, source: SourceFile, found: Sequence[Finding]) -> tuple[list[Finding], list[Silenced]]:
        kept: list[Finding] = []
        silenced: list[Silenced] = []
        if not found:
            return kept, silenced
        suppressions = Suppressions.read(source)
        for finding in found:
            if self.options.settings.ignored(finding.path, finding.code, finding.name):
                continue
            by = suppressions.silences(finding.code, finding.name, statement_lines(source, finding))
            if by is None:
                if finding.confidence >= self.options.settings.confidence:
                    kept.append(finding)
            else:
                silenced.append(Silenced(finding, by.line, by.reason))
        return kept, silenced

    def _progress(self) -> None:
        self.done += 1
        if self.options.progress is not None:
            self.options.progress(self.done, self.total)


def statement_lines(source: SourceFile, finding: Finding) -> tuple[int, int]:
    """First and last line of the statement a finding stands in, headers only for compound ones."""
    return (finding.span.line, finding.span.end_line)


@contextmanager
def _gc_paused() -> Iterator[None]:
    """Syntax trees hold no cycles worth collecting, and looking for them costs a third of the run."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


__all__ = ["Options", "ast", "check", "check_overlay"]
