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
    x.item()  # expect: TPL201 (low)     of low impact; the part of the message comes after it
    def log(m):  # heat: step
    y.item()  # missed: TPL201     a known missed alarm: fails the day it is found
    z.item()  # false: TPL201      a known false alarm: fails the day it is gone

They are stripped before the analysis, lines stay put. All core rules run on every case; those of the extra tier and
`widespread` ones, which may have a word for every program, on the cases of their own folder and where a marker names
them. Afterwards the safe fixes must give `<case>.fixed.py` and all fixes `<case>.unsafe.py` (for a case that is a
folder: the folders `<case>.fixed` and `<case>.unsafe`), the result must parse, and a second round must change nothing.
A missing `.fixed` means that no safe fix may change the case; a missing `.unsafe` that the other fixes add nothing to
it. `measure.py` (a benchmark) and `run.py` (what runs the cases before and after their fixes) are no cases. With
`PERFLINT_BLESS=1` in the environment these files are rewritten instead of compared: review the difference.
Groups whose name begins with `_` test the engine: rules run only on cases that mark a finding.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import enum
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perflint.analysis.program import Program
from perflint.engine import Options, check
from perflint.errors import PerflintError
from perflint.finding import Applicability, Finding, Heat, Report
from perflint.fixes.rounds import fix_files
from perflint.ir.survey import survey
from perflint.project.configured import Configured
from perflint.project.discovery import discover
from perflint.project.settings import load_settings
from perflint.rule_api.context import Context
from perflint.rule_api.registry import load_rules
from perflint.rule_api.rule import Rule, Tier
from perflint.syntax.file import SourceFile
from perflint.syntax.parse import plainly_parsed
from perflint.syntax.roles import holds_tests
from perflint.syntax.tree import Tree

__all__ = [
    "Case",
    "FixtureError",
    "Marker",
    "Verb",
    "check_case",
    "find_cases",
    "findings_of",
    "numerics_of",
    "read_markers",
]

#: Suffix of the sibling that holds a case's text after the fixes, by the weakest applicability applied.
_RESULTS = {Applicability.SAFE: ".fixed", Applicability.UNSAFE: ".unsafe"}
#: `kind` markers are for the tests of the engine's values; here they are stripped only.
_STARTS = re.compile(r"[ \t]*#[ \t]*(?:expect|missed|false|heat|kind):")
_ITEM = re.compile(r'\s*([A-Za-z][\w-]*)(?:\s+\((low|medium|high)\))?(?:\s+"([^"]*)")?\s*(,?)')
_VERB = re.compile(r"\s*#\s*(expect|missed|false|heat|kind):")
_NO_CASES = frozenset({"measure.py", "run.py"})
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
    """One claim about one line: `value` is a rule's code, or a heat's label for `Verb.HEAT`. Of `message` and `impact`
    nothing is claimed where they are empty.
    """

    line: int
    verb: Verb
    value: str
    message: str = ""
    impact: str = ""

    @property
    def expected(self) -> bool:
        """Whether a finding belongs here, found or not."""
        return self.verb in {Verb.EXPECT, Verb.MISSED}


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
        return any(marker.expected for _, markers in self.read() for marker in markers.each)

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
    cases: list[Path] = []
    results: list[Path] = []
    for path in sorted(group.iterdir()):
        if path.name.startswith((".", "__")) or path.name in _NO_CASES:
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
            markers.append(Marker(line, Verb(verb[1]), item[1], item[3] or "", item[2] or ""))
            position, more = item.end(), item[4]
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


def check_case(case: Case, *, rules: Sequence[type[Rule]] | None = None, bless: bool | None = None) -> None:
    """Run `rules`, by default the installed ones as told above, on `case`.

    Raises AssertionError that lists every difference from its markers and from its `.fixed` and `.unsafe` siblings,
    FixtureError for a case that is broken by itself. `bless` rewrites the siblings instead of comparing them; None
    asks the environment (`PERFLINT_BLESS`).
    """
    __tracebackhide__ = True  # pytest shows the list, not this function
    bless = bool(os.environ.get("PERFLINT_BLESS")) if bless is None else bless
    marked = dict(case.read())
    wrong = list(_compare_heat(marked))
    if case.fires or not case.group.startswith("_"):
        run = [rule() for rule in (rules_for(case, marked) if rules is None else rules)]
        wrong += _compare_run(case, marked, run, bless=bless)
    if wrong:
        raise AssertionError("\n".join([f"{case}:", *wrong]))


def findings_of(case: Case) -> tuple[Finding, ...]:
    """What the rules of `case` report on it."""
    marked = dict(case.read())
    rules = [rule() for rule in rules_for(case, marked)]
    return checked({name: item.text for name, item in marked.items()}, rules).findings


def numerics_of(case: Case) -> dict[Applicability, frozenset[str]]:
    """The numerics classes that the fixes of `case` state, by the weakest applicability applied."""
    marked = dict(case.read())
    rules = [rule() for rule in rules_for(case, marked)]
    found = checked({name: item.text for name, item in marked.items()}, rules).findings
    fixes = [finding.fix for finding in found if finding.fix is not None]
    return {weakest: frozenset(fix.numerics for fix in fixes if fix.applicability >= weakest) for weakest in _RESULTS}


def rules_for(case: Case, marked: Mapping[str, Marked]) -> list[type[Rule]]:
    """All core rules, and of those that have a word for most programs what the case is about."""
    named = {marker.value for item in marked.values() for marker in item.each} | {case.group.partition("-")[0]}
    return [rule for rule in load_rules() if (rule.tier is Tier.CORE and not rule.widespread) or rule.code in named]


def _compare_run(case: Case, marked: Mapping[str, Marked], rules: Sequence[Rule], *, bless: bool) -> list[str]:
    """Findings and fixes of one run over the case."""
    texts = {name: item.text for name, item in marked.items()}
    report = checked(texts, rules)
    wrong = [f"{problem.path}:{problem.line or 0}: {problem.message}" for problem in report.errors]
    wrong += _compare_findings(marked, report.findings)
    before = texts
    for applicability in _RESULTS:
        after = _fixed(texts, report, rules, applicability, wrong)
        target = case.result(applicability)
        if bless:
            _write_result(case, target, after if after != before else None)
        else:
            wrong += _compare_result(case, target, before, after)
        before = after
    return wrong


def checked(texts: Mapping[str, str], rules: Sequence[Rule]) -> Report:
    """Check `texts` as a project of its own with nothing around it."""
    with _project(texts):
        settings = load_settings(Path())
        return check(discover(["."], settings), Options(settings, rules, cache=False))


@contextlib.contextmanager
def _project(texts: Mapping[str, str]) -> Iterator[None]:
    """Work inside a temporary folder that holds `texts` and marks the root of a project."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="perflint-case-") as name:
        folder = Path(name)
        # An empty configuration ends the search for one: nothing above the folder holds.
        (folder / "pyproject.toml").write_text("[tool.perflint]\n")
        for relative, text in texts.items():
            file = folder / relative
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def _compare_findings(marked: Mapping[str, Marked], findings: tuple[Finding, ...]) -> Iterator[str]:
    found: dict[tuple[str, int, str], list[Finding]] = {}
    for finding in findings:
        found.setdefault((finding.path, finding.span.line, finding.code), []).append(finding)
    for path, item in marked.items():
        for marker in item.each:
            if marker.verb is Verb.HEAT:
                continue
            here = found.get((path, marker.line, marker.value), [])
            place = f"{path}:{marker.line}: {marker.value}"
            if marker.verb is Verb.MISSED:
                if here:
                    yield f"{place} is found now: turn `missed` into `expect`"
            elif not here:
                gone = "is no longer reported: remove the marker" if marker.verb is Verb.FALSE else "is not found"
                yield f"{place} {gone}"
            elif not any(marker.message in finding.message for finding in here):
                yield f"{place} does not say {marker.message!r} but {here[0].message!r}"
            elif marker.impact and all(finding.impact.label != marker.impact for finding in here):
                yield f"{place} is of {here[0].impact.label} impact, not of {marker.impact}"
    claimed = {(path, marker.line, marker.value) for path, item in marked.items() for marker in item.each}
    for (path, line, code), here in sorted(found.items()):
        if (path, line, code) not in claimed:
            yield f"{path}:{line}: {code} is unexpected: {here[0].message}"
        elif len({finding.sort_key for finding in here}) < len(here):
            yield f"{path}:{line}: {code} is said twice: {here[0].message}"


def _compare_heat(marked: Mapping[str, Marked]) -> Iterator[str]:
    """On the line of a `def`, how often it is called; on other lines, how often the line runs."""
    if not any(marker.verb is Verb.HEAT for item in marked.values() for marker in item.each):
        return
    sources = {name: SourceFile(name, item.text) for name, item in marked.items() if name.endswith(".py")}
    trees = {name: Tree(source, plainly_parsed(source)) for name, source in sources.items()}
    with _project({name: item.text for name, item in marked.items()}):
        discovery = discover(["."], load_settings(Path()))
        configured = Configured(discovery.configured)()
    program = Program(
        {
            name: survey(tree.module, tree.source.lines, outlined=holds_tests(name, tree.module))
            for name, tree in trees.items()
        },
        configured=lambda: configured,
        beside=discovery.beside,
    )
    known = {heat.label for heat in Heat}
    for name, tree in trees.items():
        context = Context(tree, program)
        for marker in marked[name].each:
            if marker.verb is not Verb.HEAT:
                continue
            if marker.value not in known:
                raise FixtureError(f"{name}:{marker.line}: {marker.value!r} is no heat; known: {', '.join(known)}")
            heat = _heat_of_line(context, marker.line)
            if heat is None:
                yield f"{name}:{marker.line}: no statement starts here, so there is no heat to compare"
            elif heat.label != marker.value:
                yield f"{name}:{marker.line}: the heat is {heat.label}, not {marker.value}"


def _heat_of_line(context: Context, line: int) -> Heat | None:
    for node in ast.walk(context.tree.module):
        if isinstance(node, ast.stmt) and node.lineno == line:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return context.program.heat(context.own_scope(node))
            return context.heat(node)
    return None


def _fixed(
    texts: Mapping[str, str], report: Report, rules: Sequence[Rule], weakest: Applicability, wrong: list[str]
) -> dict[str, str]:
    """What `texts` become when the fixes of at least `weakest` are made as `perflint fix` makes them.

    Adds to `wrong` every fix that it would drop: its result does not parse, its finding stays, another appears, or
    it never comes to rest.
    """
    current = dict(texts)

    def recheck(overlay: Mapping[str, str]) -> Report:
        return checked(current | dict(overlay), rules)

    sources = {name: SourceFile(name, text) for name, text in texts.items() if name.endswith(".py")}
    outcome = fix_files(sources, report.findings, recheck, lambda fix: fix.applicability >= weakest)
    for item in outcome.dropped:
        place = f"{item.finding.path}:{item.finding.span.line}: {item.finding.code}"
        wrong.append(f"{place} has a {weakest.label} fix that does not hold: {item.reason}")
    return current | {file.source.path: file.text for file in outcome.files}


def _compare_result(case: Case, target: Path, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    hint = "run with PERFLINT_BLESS=1 and review the difference"
    if not target.exists():
        if after != before:
            yield f"{target.name} is missing, but fixes change the case; {hint}"
            yield from _difference(before, after)
        return
    wanted = {case.path.name: target.read_bytes().decode()} if target.is_file() else _texts(target)
    if after == before:
        yield f"{target.name} exists, but there is nothing more to fix; remove it"
    elif wanted != dict(after):
        yield f"{target.name} differs from what the fixes give (+); {hint}"
        yield from _difference(wanted, after)


def _difference(wanted: Mapping[str, str], found: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*wanted, *found}):
        old, new = wanted.get(name, "").splitlines(), found.get(name, "").splitlines()
        yield from difflib.unified_diff(old, new, name, name, lineterm="", n=1)
        if old == new and wanted.get(name) != found.get(name):
            yield f"{name}: the line endings differ"


def _write_result(case: Case, target: Path, texts: Mapping[str, str] | None) -> None:
    """Write what the fixes give, or remove a result that is no longer one."""
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)
    if texts is None:
        return
    for name, text in texts.items():
        file = target if case.path.is_file() else target / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
