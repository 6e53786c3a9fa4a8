"""Findings that a project has agreed to live with for now, kept in a file, so that only new ones are reported.

An entry is a rule, a file and the text of a line, and how often that is found: it stays true when lines move, and is
gone once somebody touches the line. Reads and writes one file; decides nothing about exit codes.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from perflint.errors import PerflintError
from perflint.finding import Finding, Report
from perflint.report.places import Texts
from perflint.system.atomic import write_whole

#: The name of the file where no other is given, at the root of the project.
FILE = "perflint-baseline.json"
_VERSION = 1
_MOST_OF_ONE = 100_000


class Entry(NamedTuple):
    """`path` is relative to the folder of the baseline, with forward slashes; `line` has single blanks."""

    path: str
    rule: str
    line: str


@dataclass(frozen=True, slots=True)
class Compared:
    """A report without what is known, how many findings that were, and the entries that are found no more."""

    report: Report
    known: int
    gone: Counter[Entry]


@dataclass(frozen=True)
class Baseline:
    """The known findings, and how often each is. `file` need not exist."""

    file: Path
    entries: Mapping[Entry, int] = dataclasses.field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> Baseline:
        """Raises PerflintError when the file is not there or does not read as a baseline."""
        try:
            if file.exists() and not file.is_file():  # a device may have no end
                raise PerflintError(f"{file}: not a regular file")
            data = json.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            hint = "; create it with 'perflint baseline write'" if isinstance(error, FileNotFoundError) else ""
            raise PerflintError(f"{file}: cannot be read: {error.strerror or error}{hint}") from error
        except (ValueError, RecursionError) as error:
            raise PerflintError(f"{file}: not a baseline: {error}") from error
        try:
            if data["version"] != _VERSION:
                hint = "delete it, and run 'perflint baseline write' again"
                raise PerflintError(f"{file}: a baseline of another version ({data['version']}); {hint}")
            entries = Counter[Entry]()
            for one in data["findings"]:
                entries[Entry(str(one["path"]), str(one["rule"]), str(one["line"]))] += _count(one["count"])
        except (KeyError, TypeError, ValueError) as error:
            raise PerflintError(f"{file}: not a baseline: {type(error).__name__}: {error}") from error
        return cls(file, entries)

    def write(self) -> None:
        """One finding a line and sorted, so that two branches merge. Raises PerflintError."""
        listed = [{**entry._asdict(), "count": count} for entry, count in sorted(self.entries.items()) if count > 0]
        lines = ",\n".join(f"  {json.dumps(one, ensure_ascii=False)}" for one in listed)
        text = f'{{"version": {_VERSION}, "findings": [\n{lines}\n]}}\n'
        try:
            write_whole(self.file, text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            raise PerflintError(f"{self.file}: cannot be written: {error.strerror or error}") from error

    def compare(self, report: Report) -> Compared:
        """Take out of `report` what is known. In a file that is not part of it, nothing is gone."""
        left = Counter(self.entries)
        texts = Texts(report.texts)
        new = []
        for finding in report.findings:
            entry = self.entry(finding, texts)
            if left[entry] > 0:
                left[entry] -= 1
            else:
                new.append(finding)
        known = len(report.findings) - len(new)
        return Compared(dataclasses.replace(report, findings=tuple(new)), known, +left)

    def entry(self, finding: Finding, texts: Texts) -> Entry:
        lines = texts.lines(finding.path, finding.cell)
        line = lines[finding.span.line - 1] if finding.span.line <= len(lines) else ""
        return Entry(self.path_of(finding.path), finding.code, " ".join(line.split()))

    def path_of(self, display: str) -> str:
        """A path as findings print it, from the folder of the baseline."""
        return _relative(display, self.file.absolute().parent)

    def updated(self, report: Report, checked: Collection[str]) -> Baseline:
        """With what `report` found in the `checked` files (paths as `path_of` gives them) in the place of what was.

        Entries of files that are not there any more go.
        """
        texts = Texts(report.texts)
        folder = self.file.absolute().parent
        kept = {
            entry: count
            for entry, count in self.entries.items()
            if entry.path not in checked and (folder / entry.path).exists()
        }
        return Baseline(self.file, Counter(kept) + Counter(self.entry(one, texts) for one in report.findings))

    def without(self, gone: Counter[Entry], checked: Collection[str]) -> Baseline:
        """Without the entries of `gone` that stand in `checked` files, or in files that are not there any more."""
        folder = self.file.absolute().parent
        dropped = Counter(
            {
                entry: count
                for entry, count in gone.items()
                if entry.path in checked or not (folder / entry.path).exists()
            }
        )
        return Baseline(self.file, Counter(self.entries) - dropped)


def _relative(display: str, folder: Path) -> str:
    absolute = os.path.abspath(display)  # noqa: PTH100 - links keep the name the user knows
    try:
        return os.path.relpath(absolute, folder).replace(os.sep, "/")
    except ValueError:  # another drive
        return Path(absolute).as_posix()


def _count(value: object) -> int:
    """How often a finding is known. A number that no project has would only be there to fill the memory."""
    if not isinstance(value, int) or not 0 <= value <= _MOST_OF_ONE:
        raise ValueError(f"{value!r} is no count")
    return value
