"""The fixture harness: runs rules on example files and demands exactly the findings and rewrites they announce.

Public, and the same for the built-in rules and for plug-ins:

    from pathlib import Path
    import pytest
    from perflint.testing import check_case, find_cases

    @pytest.mark.parametrize("case", find_cases(Path(__file__).parent / "fixtures"), ids=str)
    def test_fixture(case):
        check_case(case)

The folder given holds one folder per rule, named `<CODE>-<name>`; each file or folder in those is a case. Trailing
comments say what must happen on the line where a finding starts:

    x.item()  # expect: TPL201
    x.item()  # expect: TPL201 "part of the message", TPL209
    def log(m):  # heat: step
    y.item()  # missed: TPL201     a known missed alarm: fails the day it is found
    z.item()  # false: TPL201      a known false alarm: fails the day it is gone

They are stripped before the analysis, lines stay put. *All* rules run on every case. Afterwards the safe fixes must
give `<case>.fixed.py` and all fixes `<case>.unsafe.py` (for a case that is a folder: the folders `<case>.fixed` and
`<case>.unsafe`), the result must parse, and a second round must change nothing. A missing `.fixed` means that no safe
fix may change the case; a missing `.unsafe` that the other fixes add nothing to it. `measure.py` is no case. With
`PERFLINT_BLESS=1` in the environment these files are rewritten instead of compared: review the difference.
Groups whose name begins with `_` test the engine: findings are compared only in cases that mark one.
"""

from __future__ import annotations

import difflib
import enum
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from perflint.errors import PerflintError
from perflint.finding import Applicability

__all__ = ["Case", "FixtureError", "Marker", "Verb", "check_case", "find_cases", "read_markers"]

#: Suffix of the sibling that holds a case's text after the fixes, by the weakest applicability applied.
_RESULTS = {Applicability.SAFE: ".fixed", Applicability.UNSAFE: ".unsafe"}
#: `kind` markers are for the tests of the engine's values; here they are stripped only.
_STARTS = re.compile(r"[ \t]*#[ \t]*(?:expect|missed|false|heat|kind):")
_ITEM = re.compile(r'\s*([A-Za-z][\w-]*)(?:\s+"([^"]*)")?\s*(,?)')
_VERB = re.compile(r"\s*#\s*(expect|missed|false|heat|kind):")
#: A rule's folder, or one of the engine's.
_GROUP = re.compile(r"[A-Z]+\d+-|_[a-z]")


class FixtureError(PerflintError):
    """A fixture is broken by itself: a marker that does not read, a `.fixed.py` without its case."""


class Verb(enum.Enum):
    """What a marker says about its line."""

    EXPECT = "expect"
    MISSED = "missed"
    FALSE = "false"
    HEAT = "heat"


@dataclass(frozen=True, slots=True)
class Marker:
    """One claim about one line: `value` is a rule's code, or a heat's label for `Verb.HEAT`."""

    line: int
    verb: Verb
    value: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One example: a file, or a folder that is a small program. `str(case)` is `<rule folder>/<case>`."""

    group: str
    path: Path

    def __str__(self) -> str:
        return f"{self.group}/{self.path.stem}"

    @property
    def fires(self) -> bool:
        """Whether the case says that a finding is right somewhere."""
        return any(marker.verb in {Verb.EXPECT, Verb.MISSED} for _, markers in self.read() for marker in markers.each)

    def read(self) -> Iterator[tuple[str, Marked]]:
        """Relative path and content of every file, binary and hidden ones left out."""
        for name, text in _texts(self.path).items():
            yield name, read_markers(text, f"{self}/{name}") if name.endswith(".py") else Marked(text, ())

    def result(self, applicability: Applicability) -> Path:
        """Where the text after the fixes of at least `applicability` is kept."""
        suffix = _RESULTS[applicability] + (".py" if self.path.is_file() else "")
        return self.path.with_name(self.path.stem + suffix)


@dataclass(frozen=True, slots=True)
class Marked:
    """A file's text without its markers, and the markers."""

    text: str
    each: tuple[Marker, ...]


def find_cases(root: Path) -> list[Case]:
    """All cases below `root`, a folder of rule folders, or one rule folder. Sorted.

    Raises FixtureError for a `.fixed` or `.unsafe` that belongs to no case.
    """
    if _GROUP.match(root.name):
        return _cases_of(root)
    groups = sorted(path for path in root.iterdir() if path.is_dir() and _GROUP.match(path.name))
    return [case for group in groups for case in _cases_of(group)]


def _cases_of(group: Path) -> list[Case]:
    cases, results = [], []
    for path in sorted(group.iterdir()):
        if path.name.startswith((".", "__")) or path.name == "measure.py":
            continue
        if not (path.is_dir() or path.suffix == ".py"):
            continue
        stem = path.name.removesuffix(".py")
        (results if stem.endswith(tuple(_RESULTS.values())) else cases).append(path)
    named = {path.name.removesuffix(".py"): path for path in cases}
    for path in results:
        case = named.get(path.name.removesuffix(".py").rpartition(".")[0])
        if case is None or case.is_dir() != path.is_dir():
            raise FixtureError(f"{group.name}/{path.name} belongs to no case")
    return [Case(group.name, path) for path in cases]


def read_markers(text: str, where: str = "<text>") -> Marked:
    """Take the markers out of `text`. Lines keep their numbers and their endings.

    Raises FixtureError for a comment that begins like a marker and does not read as one.
    """
    lines, markers = [], []
    for number, line in enumerate(text.split("\n"), 1):
        body, ending = (line[:-1], "\r") if line.endswith("\r") else (line, "")
        start = _STARTS.search(body)
        if start:
            markers += _parse(body[start.start() :], number, where)
            body = body[: start.start()]
        lines.append(body + ending)
    return Marked("\n".join(lines), tuple(markers))


def _parse(comment: str, line: int, where: str) -> list[Marker]:
    markers = []
    position = 0
    while position < len(comment):
        verb = _VERB.match(comment, position)
        if verb is None:
            raise FixtureError(f"{where}:{line}: cannot read the marker {comment[position:].strip()!r}")
        position = verb.end()
        if verb[1] == "kind":
            after = comment.find("#", position)
            position = len(comment) if after < 0 else after
            continue
        more = ","
        while more:
            item = _ITEM.match(comment, position)
            if item is None:
                raise FixtureError(f"{where}:{line}: cannot read the marker {comment.strip()!r}")
            markers.append(Marker(line, Verb(verb[1]), item[1], item[2] or ""))
            position, more = item.end(), item[3]
    return markers


def _texts(path: Path) -> dict[str, str]:
    """Text files of a case or of its result, by path relative to the case. Reads bytes, so line endings stay."""
    if path.is_file():
        return {path.name: path.read_bytes().decode()}
    files = (file for file in sorted(path.rglob("*")) if file.is_file())
    inside = ((file, file.relative_to(path)) for file in files)
    return {
        name.as_posix(): file.read_bytes().decode()
        for file, name in inside
        if "__pycache__" not in name.parts and not any(part.startswith(".") for part in name.parts)
    }
