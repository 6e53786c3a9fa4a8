"""Whether a workload runs what a fix changes: which lines those are, and what untimed runs saw of them.

A fix is reached when the workload runs one of the lines that it takes away and one of those that it puts there, as far
as there are any. An import counts for nothing, and a line outside functions only where the fix changes none inside;
for a changed head of a function (its decorators, its parameters) stands its body.
"""

from __future__ import annotations

import ast
import difflib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perflint.verify import tracing

#: Line numbers by path relative to the tree.
Lines = Mapping[str, frozenset[int]]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
VARIABLE = "PERFLINT_VERIFY_TRACE"

_SITE = """\
import importlib.machinery, importlib.util, atexit, json, os, sys
_here = os.path.dirname(os.path.abspath(__file__))
_spec = importlib.util.spec_from_file_location("perflint_verify_tracing", {tracing!r})
_tracing = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_tracing)
_tracing.begin(json.loads(os.environ[{variable!r}]))
atexit.register(_tracing.finish)
# The sitecustomize that would have run without this one.
_others = [entry for entry in sys.path if os.path.abspath(entry or ".") != _here]
_spec = importlib.machinery.PathFinder.find_spec("sitecustomize", _others)
if _spec is not None and _spec.loader is not None:
    sys.modules["sitecustomize"] = _module = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(_module)
"""


@dataclass(frozen=True, slots=True)
class Changed:
    """Lines to look for, in the tree as it is and in the tree with fixes."""

    before: Lines
    after: Lines


def changed(texts: Mapping[str, tuple[str, str]]) -> Changed:
    """From the text of each file before and after."""
    sides: tuple[dict[str, frozenset[int]], dict[str, frozenset[int]]] = ({}, {})
    for path, (one, other) in texts.items():
        touched = _touched(one, other)
        spots = [_spots(text, lines) for text, lines in zip((one, other), touched)]
        inside = any(inner for inner, _ in spots)
        for side, (inner, outer) in zip(sides, spots):
            side[path] = frozenset(inner if inside else outer)
    return Changed(*sides)


def _touched(one: str, other: str) -> tuple[set[int], set[int]]:
    lines = _lines(one), _lines(other)
    before: set[int] = set()
    after: set[int] = set()
    for tag, start, end, begin, finish in difflib.SequenceMatcher(None, *lines, autojunk=False).get_opcodes():
        if tag != "equal":
            before.update(range(start + 1, end + 1))
            after.update(range(begin + 1, finish + 1))
    return before, after


def _lines(text: str) -> list[str]:
    """As Python counts them."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _spots(text: str, lines: set[int]) -> tuple[set[int], set[int]]:
    """Lines of the statements that `lines` belong to: inside functions, and outside."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return set(), set()
    inside: set[int] = set()
    outside: set[int] = set()
    for statement, is_inside in _statements(tree.body, inside=False):
        head = _head(statement)
        if not lines & set(head) or isinstance(statement, _IMPORTS):
            continue
        if isinstance(statement, _FUNCTIONS):
            inside.update(range(statement.body[0].lineno, (statement.end_lineno or 0) + 1))
        else:
            (inside if is_inside else outside).update(head)
    return inside, outside


def _statements(body: list[ast.stmt], *, inside: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """All statements below, each with whether it runs inside a function."""
    pending = [(statement, inside) for statement in body]
    while pending:
        statement, is_inside = pending.pop()
        yield statement, is_inside
        below = is_inside or isinstance(statement, _FUNCTIONS)
        for child in ast.iter_child_nodes(statement):
            inner = [child] if isinstance(child, ast.stmt) else getattr(child, "body", None)
            if isinstance(inner, list):
                pending += [(one, below) for one in inner if isinstance(one, ast.stmt)]


def _head(statement: ast.stmt) -> range:
    """Lines of a statement without those of the statements in it."""
    decorators = getattr(statement, "decorator_list", [])
    start = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
    first = getattr(statement, "body", None) or getattr(statement, "cases", None)
    if isinstance(first, list) and first:
        inner = first[0].pattern.lineno if isinstance(first[0], ast.match_case) else first[0].lineno
        return range(start, max(inner, start + 1))
    return range(start, (statement.end_lineno or start) + 1)


@dataclass(frozen=True, slots=True)
class Seen:
    """What an untimed run showed. `is_known`: a line that is not in `lines` was not run."""

    lines: Lines = field(default_factory=dict)
    is_known: bool = False
    why_unknown: str = ""


def why_not(change: Changed, before: Seen, after: Seen) -> str:
    """Why the fix counts as not reached, in words; empty where it was reached, or nothing is known."""
    wanted = change.before, change.after
    missed = [
        bool(any(lines.values())) and seen.is_known and not _overlap(lines, seen.lines)
        for lines, seen in zip(wanted, (before, after))
    ]
    if missed[0]:
        return f"the workload never runs {_places(change.before)}"
    if missed[1]:
        where = _places(change.after)
        return f"the workload never runs what the fix changes: {where} of the fixed file{_plural(change.after)}"
    return ""


def is_seen(change: Changed, before: Seen, after: Seen) -> bool:
    """Whether both sides ran what is changed, as far as there is anything."""
    pairs = (change.before, before), (change.after, after)
    return all(not any(lines.values()) or _overlap(lines, seen.lines) for lines, seen in pairs)


def _overlap(one: Lines, other: Lines) -> bool:
    return any(lines & other.get(path, frozenset()) for path, lines in one.items())


def _plural(lines: Lines) -> str:
    return "s" if sum(map(bool, lines.values())) > 1 else ""


def _places(lines: Lines) -> str:
    """`training/cast.py:10`, the first line of each file."""
    return ", ".join(f"{path}:{min(numbers)}" for path, numbers in lines.items() if numbers)


class Tracer:
    """Has a run of a workload watched, and reads what was seen. `folder` is for files of its own."""

    def __init__(self, folder: Path, tree: Path, lines: Lines) -> None:
        self._log = folder / "seen.log"
        self._log.unlink(missing_ok=True)
        self._site = folder / "site"
        self._tree = tree
        self._site.mkdir(exist_ok=True)
        source = _SITE.format(tracing=str(Path(tracing.__file__).resolve()), variable=VARIABLE)
        (self._site / "sitecustomize.py").write_text(source, encoding="utf-8")
        self.request = {
            "log": str(self._log),
            "lines": {str(tree / path): sorted(numbers) for path, numbers in lines.items()},
        }

    def environment(self, python_path: str = "") -> dict[str, str]:
        """For a process whose Pythons are to be watched."""
        paths = [str(self._site), *([python_path] if python_path else [])]
        return {"PYTHONPATH": os.pathsep.join(paths), VARIABLE: json.dumps(self.request)}

    def seen(self) -> Seen:
        """After the run."""
        try:
            said = self._log.read_text(encoding="utf-8").splitlines()
        except OSError:
            said = []
        found: dict[str, set[int]] = {}
        for line in said:
            if line.startswith("["):
                path, number = json.loads(line)
                found.setdefault(Path(path).relative_to(self._tree).as_posix(), set()).add(int(number))
        lines = {path: frozenset(numbers) for path, numbers in found.items()}
        reasons = {
            tracing.COMPILED: "parts of the workload ran compiled",
            tracing.LOST: "the workload sets a trace function of its own",
        }
        why = next((text for word, text in reasons.items() if word in said), "")
        if tracing.STARTED not in said:
            why = "the workload starts no Python process that could be traced"
        return Seen(lines, not why, why)
