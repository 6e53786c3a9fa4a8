"""Fixes of a run: found, proven by checking again, written. What `fix` and `check --fix` share; prints nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from perflint.errors import SourceError
from perflint.finding import Applicability, Finding, Fix, Problem, Report
from perflint.fixes.rounds import Dropped, FixedFile, Outcome, fix_files
from perflint.fixes.width import width_for
from perflint.report.counts import many
from perflint.report.visible import visible
from perflint.syntax.read import decode_source, read_bytes

if TYPE_CHECKING:
    from perflint.engine import Options
    from perflint.project.discovery import Discovery
    from perflint.rule_api.rule import Rule
    from perflint.syntax.file import SourceFile


@dataclass(frozen=True, slots=True)
class Fixing:
    """What fixes make of the files of a report. `read` holds the bytes of each such file, by path.

    `more` counts the fixes that would be made as well if unsafe ones were asked for.
    """

    outcome: Outcome
    read: Mapping[str, bytes]
    problems: tuple[Problem, ...]
    more: int

    @property
    def changed(self) -> bool:
        return bool(self.outcome.files)


def fix_report(
    discovery: Discovery,
    options: Options,
    report: Report,
    weakest: Applicability,
    narrow: Callable[[Report], Report] = lambda report: report,
) -> Fixing:
    """Make the fixes of `report` that are at least `weakest`, in memory.

    `narrow` makes of a report what is to be fixed of it; `report` is narrowed already.
    """

    def usable(fix: Fix) -> bool:
        return fix.applicability >= weakest

    wanted = [finding for finding in report.findings if finding.fix is not None and usable(finding.fix)]
    loading = _Loading(discovery, options, report)
    loading.load(sorted({finding.path for finding in wanted}))
    files = {one.display: one for one in discovery.analysed}

    from perflint.engine import Memory, check_overlay

    memory = options.memory or Memory()

    def recheck(overlay: Mapping[str, str]) -> Report:
        reported = tuple(files[path] for path in sorted(overlay))
        quiet = dataclasses.replace(options, progress=None, memory=memory)
        return narrow(check_overlay(dataclasses.replace(discovery, reported=reported, problems=()), quiet, overlay))

    findings = [loading.of_module(finding) for finding in report.findings]
    width = lru_cache(lambda path: width_for(discovery.file(path).resolve().parent))
    outcome = fix_files(loading.sources, findings, recheck, usable, width)
    outcome = dataclasses.replace(outcome, dropped=tuple(loading.placed(outcome)))
    more = sum(
        finding.fix is not None and finding.fix.applicability is Applicability.UNSAFE for finding in report.findings
    )
    return Fixing(outcome, loading.read, tuple(loading.problems), more if weakest > Applicability.UNSAFE else 0)


class _Loading:
    """The files to be fixed, as bytes and as text. One that two names lead to is fixed under the first."""

    def __init__(self, discovery: Discovery, options: Options, report: Report) -> None:
        self.discovery = discovery
        self.stdin = options.stdin
        self.report = report
        self.sources: dict[str, SourceFile] = {}
        self.read: dict[str, bytes] = {}
        self.problems: list[Problem] = []

    def load(self, paths: Sequence[str]) -> None:
        known: set[Path] = set()
        for path in paths:
            real = self.discovery.file(path).resolve()
            if real in known:
                continue
            known.add(real)
            try:
                data = self._bytes(path)
                source = decode_source(data, path)
            except SourceError as error:
                self.problems.append(Problem(path, error.message, error.line))
                continue
            if source.raw == self.report.texts.get(path, source.raw):
                self.sources[path] = source
                self.read[path] = data
            else:
                self.problems.append(Problem(path, "not fixed: the file has changed since the check"))

    def of_module(self, finding: Finding) -> Finding:
        """The finding as the checks of a fix see it: a notebook is rewritten as one module."""
        source = self.sources.get(finding.path)
        return source.unplaced(finding) if source is not None else finding

    def placed(self, outcome: Outcome) -> Iterator[Dropped]:
        """What was not fixed, where people see it in the new text."""
        texts = {file.source.path: file.text for file in outcome.files}
        for item in outcome.dropped:
            path = item.finding.path
            source = self.sources[path]
            if path in texts:
                source = decode_source(source.encode(texts[path]), path)
            yield dataclasses.replace(item, finding=source.placed(item.finding))

    def _bytes(self, path: str) -> bytes:
        if self.stdin is not None and self.stdin[0] == path:
            return self.stdin[1]
        return read_bytes(self.discovery.file(path))


def encoded(fixing: Fixing) -> dict[str, bytes]:
    """The new content of every changed file, by path."""
    return {file.source.path: file.source.encode(file.text) for file in fixing.outcome.files}


@dataclass(frozen=True, slots=True)
class Made:
    """What was done on disk, and what was not."""

    written: tuple[FixedFile, ...] = ()
    problems: tuple[Problem, ...] = ()
    dropped: tuple[Dropped, ...] = ()

    def lines(self) -> Iterator[str]:
        """In words."""
        for problem in self.problems:
            yield described(problem)
        for item in self.dropped:
            yield not_fixed(item)
        for file in self.written:
            yield named(file)


def make(
    discovery: Discovery, options: Options, report: Report, narrow: Callable[[Report], Report], *, unsafe: bool
) -> Made:
    """Make the fixes of `report`, which is narrowed already, and write them."""
    fixing = fix_report(discovery, options, report, Applicability.UNSAFE if unsafe else Applicability.SAFE, narrow)
    written, problems = write(discovery, fixing)
    return Made(tuple(written), (*fixing.problems, *problems), fixing.outcome.dropped)


def write(discovery: Discovery, fixing: Fixing) -> tuple[list[FixedFile], list[Problem]]:
    """Write the changed files. Returns those written, and what went wrong with others."""
    from perflint.fixes.write import WriteError, replace_file

    written: list[FixedFile] = []
    problems: list[Problem] = []
    contents = encoded(fixing)
    for file in fixing.outcome.files:
        path = file.source.path
        try:
            replace_file(discovery.file(path), fixing.read[path], contents[path], discovery.root)
        except WriteError as error:
            problems.append(Problem(path, str(error)))
        else:
            written.append(file)
    return written, problems


def named(file: FixedFile) -> str:
    """`fixed train.py: TPL101, TPL305 (2)`."""
    counts: dict[str, int] = {}
    for finding in file.taken:
        counts[finding.code] = counts.get(finding.code, 0) + 1
    codes = (code if number == 1 else f"{code} ({number})" for code, number in sorted(counts.items()))
    return visible(f"fixed {file.source.path}: {', '.join(codes)}")


def described(problem: Problem) -> str:
    """`train.py:12: nests too deep to be read`."""
    place = problem.path if problem.line is None else f"{problem.path}:{problem.line}"
    return visible(f"{place}: {problem.message}")


def without_fix(report: Report, rules: Sequence[type[Rule]]) -> Iterator[str]:
    """By rule, how many findings have no fix, and why: `TPL801: 2 findings have no fix: the launcher must change.`"""
    counts: dict[str, int] = {}
    for one in report.findings:
        if one.fix is None:
            counts[one.code] = counts.get(one.code, 0) + 1
    by_code = {rule.code: rule for rule in rules}
    for code, count in sorted(counts.items()):
        why = by_code[code].why_no_fix() if code in by_code else ""
        told = why or f"the conditions of its fix do not hold; `perflint explain {code}` lists them."
        yield f"{code}: {many(count, 'finding')} without a fix: {told[0].lower()}{told[1:]}"


def not_fixed(item: Dropped) -> str:
    finding = item.finding
    title = finding.fix.title if finding.fix is not None else finding.name
    cell = "" if finding.cell is None else f"cell {finding.cell}:"
    return visible(f"{finding.path}:{cell}{finding.span.line}: {finding.code} not fixed ({title}): {item.reason}")
