"""Comments that silence the findings of a report, written into the files and proven by checking again."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perflint.cli import console
from perflint.errors import SourceError
from perflint.finding import Finding, Problem, Report
from perflint.source.read import decode_source, read_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from perflint.discovery import Discovery
    from perflint.run import Options
    from perflint.source.file import SourceFile

#: What is said about comments themselves is not silenced by another one.
_ABOUT_COMMENTS = "TPL001"


@dataclass(frozen=True, slots=True)
class Ignored:
    """How many findings comments silence now, in which files, and what went wrong in others."""

    findings: int = 0
    files: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    def said(self) -> str:
        many = "finding" if self.findings == 1 else "findings"
        where = "file" if len(self.files) == 1 else "files"
        return f"silenced {self.findings} {many} in {len(self.files)} {where}"


def add_ignores(discovery: Discovery, options: Options, report: Report, reason: str) -> Ignored:
    """Silence all findings of `report`. A file is written when checking it again finds nothing new in it."""
    by_path: dict[str, list[Finding]] = {}
    for finding in report.findings:
        if finding.code != _ABOUT_COMMENTS:
            by_path.setdefault(finding.path, []).append(finding)
    count = 0
    written: list[str] = []
    problems: list[Problem] = []
    done: set[Path] = set()
    for path, findings in sorted(by_path.items()):
        real = discovery.file(path).resolve()
        if real in done:
            continue  # the same file under another name
        done.add(real)
        try:
            _silence(discovery, options, path, findings, reason)
        except SourceError as error:
            problems.append(Problem(path, f"not silenced: {error.message}", error.line))
        else:
            count += len(findings)
            written.append(path)
    return Ignored(count, tuple(written), tuple(problems))


def _silence(discovery: Discovery, options: Options, path: str, findings: Sequence[Finding], reason: str) -> None:
    """Raises SourceError where it cannot be done, and then the file is as it was."""
    from perflint.fixes.apply import apply_fixes
    from perflint.fixes.ignores import ignore_fixes
    from perflint.fixes.write import WriteError, replace_file

    data = read_bytes(discovery.file(path))
    source = decode_source(data, path)
    wanted = [source.unplaced(finding) for finding in findings]
    applied = apply_fixes(source, ignore_fixes(source, wanted, reason))
    if applied.left or applied.refused:
        raise SourceError("two comments would have to stand in one place")
    _prove(discovery, options, source, applied.text, wanted)
    try:
        replace_file(discovery.file(path), data, source.encode(applied.text), discovery.root)
    except WriteError as error:
        raise SourceError(str(error)) from error


def _prove(discovery: Discovery, options: Options, source: SourceFile, text: str, gone: Sequence[Finding]) -> None:
    """Check both texts of a file: the new one has to have the findings of the old one but for those that are gone."""
    from perflint.run import check_overlay

    here = tuple(file for file in discovery.analysed if file.display == source.path)
    narrow = dataclasses.replace(discovery, reported=here, problems=())
    quiet = dataclasses.replace(options, progress=None)
    before, after = (check_overlay(narrow, quiet, {source.path: one}) for one in (source.text, text))
    if after.errors and not before.errors:
        raise SourceError(after.errors[0].message, after.errors[0].line)
    if len(after.findings) > len(before.findings) - len(gone):
        raise SourceError("the comments would not silence everything")


def report_ignored(ignored: Ignored) -> None:
    """On standard error, since standard output holds the report."""
    for path in ignored.files:
        console.complain(f"comments added to {path}")
    for problem in ignored.problems:
        place = problem.path if problem.line is None else f"{problem.path}:{problem.line}"
        console.complain(f"{place}: {problem.message}")
    console.complain(ignored.said())
