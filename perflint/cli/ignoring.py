"""Comments that silence the findings of a report, written into the files and proven by checking again."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perflint.cli import console, fixing
from perflint.errors import SourceError
from perflint.finding import Finding, Problem, Report
from perflint.report.counts import many
from perflint.syntax.read import decode_source, read_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from perflint.engine import Options
    from perflint.project.discovery import Discovery
    from perflint.syntax.file import SourceFile

#: What is said about comments themselves is not silenced by another one.
_ABOUT_COMMENTS = "TPL001"


@dataclass(frozen=True, slots=True)
class Ignored:
    """How many findings comments silence now, in which files, and what went wrong in others."""

    findings: int = 0
    files: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    def said(self) -> str:
        return f"suppressed {many(self.findings, 'finding')} in {many(len(self.files), 'file')}"


@dataclass(frozen=True, slots=True)
class _Rewrite:
    """A file, what it was read as, and its text with comments for so many findings."""

    data: bytes
    source: SourceFile
    text: str
    findings: int


def add_ignores(discovery: Discovery, options: Options, report: Report, reason: str) -> Ignored:
    """Silence all findings of `report`. A file is written when checking it again finds nothing new in it."""
    by_path: dict[str, list[Finding]] = {}
    for finding in report.findings:
        if finding.code != _ABOUT_COMMENTS:
            by_path.setdefault(finding.path, []).append(finding)
    problems: list[Problem] = []
    rewrites: dict[str, _Rewrite] = {}
    done: set[Path] = set()
    for path, findings in sorted(by_path.items()):
        real = discovery.file(path).resolve()
        if real in done:
            continue  # the same file under another name
        done.add(real)
        try:
            rewrites[path] = _rewrite(discovery.file(path), path, findings, reason)
        except SourceError as error:
            problems.append(_not_silenced(path, error))
    faults = _faults(discovery, options, rewrites) if rewrites else {}
    written: list[str] = []
    for path, rewrite in rewrites.items():
        if path in faults:
            problems.append(_not_silenced(path, SourceError(faults[path])))
            continue
        try:
            _write(discovery, path, rewrite)
        except SourceError as error:
            problems.append(_not_silenced(path, error))
        else:
            written.append(path)
    return Ignored(sum(rewrites[path].findings for path in written), tuple(written), tuple(problems))


def _not_silenced(path: str, error: SourceError) -> Problem:
    return Problem(path, f"not suppressed: {error.message}", error.line)


def _rewrite(file: Path, path: str, findings: Sequence[Finding], reason: str) -> _Rewrite:
    """Raises SourceError where there is no place for a comment."""
    from perflint.fixes.apply import apply_fixes
    from perflint.fixes.ignores import ignore_fixes

    data = read_bytes(file)
    source = decode_source(data, path)
    wanted = [source.unplaced(finding) for finding in findings]
    applied = apply_fixes(source, ignore_fixes(source, wanted, reason))
    if applied.left or applied.refused:
        raise SourceError("two comments would be on one line")
    return _Rewrite(data, source, applied.text, len(findings))


def _faults(discovery: Discovery, options: Options, rewrites: Mapping[str, _Rewrite]) -> dict[str, str]:
    """What is wrong with rewritten files: each has to have the findings it had, but for those that are silenced."""
    from perflint.engine import Memory, check_overlay

    here = tuple(file for file in discovery.analysed if file.display in rewrites)
    narrow = dataclasses.replace(discovery, reported=here, problems=())
    quiet = dataclasses.replace(options, progress=None, memory=options.memory or Memory())
    before = check_overlay(narrow, quiet, {path: one.source.text for path, one in rewrites.items()})
    after = check_overlay(narrow, quiet, {path: one.text for path, one in rewrites.items()})
    counts = [Counter(finding.path for finding in report.findings) for report in (before, after)]
    faults = {
        path: "the comments would not suppress everything"
        for path, one in rewrites.items()
        if counts[1][path] > counts[0][path] - one.findings
    }
    known = {problem.path for problem in before.errors}
    return faults | {one.path: one.message for one in after.errors if one.path in rewrites and one.path not in known}


def _write(discovery: Discovery, path: str, rewrite: _Rewrite) -> None:
    """Raises SourceError when the file cannot be written, which is then as it was."""
    from perflint.fixes.write import WriteError, replace_file

    try:
        content = rewrite.source.encode(rewrite.text)
        replace_file(discovery.file(path), rewrite.data, content, discovery.root)
    except WriteError as error:
        raise SourceError(str(error)) from error


def report_ignored(ignored: Ignored) -> None:
    """On standard error, since standard output holds the report."""
    for path in ignored.files:
        console.complain(f"comments added to {path}")
    for problem in ignored.problems:
        console.complain(fixing.described(problem))
    console.complain(ignored.said())
