"""Other ways to write a program. What is told of it must not change where the other program does the same, and must
go, or be of low impact, where a rewrite takes away what it costs.

A rewrite changes the syntax tree of a file in place and says whether there was anything to change. Statements that it
adds or moves keep the lines of what they come from (`ast.copy_location`), so that findings can be compared by the lines
of the program as it was.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import NamedTuple

from perflint import testing
from perflint.api import Impact, Rule

Change = Callable[[ast.Module], bool]
#: Rewrites after which a program does the same, by what they do.
KEEPING: dict[str, Change] = {}
#: Rewrites after which what was told is no mistake any more, or costs next to nothing.
COOLING: dict[str, Change] = {}
#: For those after which only some rules have nothing to tell: which.
ABOUT: dict[str, Callable[[type[Rule]], bool]] = {}


def keeps(change: Change) -> Change:
    """Register a rewrite that changes nothing of what a program does, by the name of its function."""
    KEEPING[change.__name__] = change
    return change


def cools(about: Callable[[type[Rule]], bool] = lambda rule: True) -> Callable[[Change], Change]:
    """Register a rewrite that takes away what makes findings of a program worth saying, those of some rules. Where it
    marks statements, it is about those alone.
    """

    def register(change: Change) -> Change:
        COOLING[change.__name__], ABOUT[change.__name__] = change, about
        return change

    return register


def marked(statement: ast.stmt) -> None:
    """Say that a rewrite takes away what a statement costs, and what stands in it."""
    for part in ast.walk(statement):
        if isinstance(part, ast.stmt):
            part.cooled = True  # type: ignore[attr-defined]


class Rewritten(NamedTuple):
    """The files of a program, and for each the line that each of its lines was: `lines[path][line]`, 0 for new ones.
    `cooled` are the lines, as they were, that a rewrite marked.
    """

    texts: dict[str, str]
    lines: dict[str, list[int]]
    cooled: set[tuple[str, int]]


class Told(NamedTuple):
    """What is told of a program, by (path, line as it was, code): findings, those of low impact among them, and the
    places that findings name besides.
    """

    findings: frozenset[tuple[str, int, str]]
    low: frozenset[tuple[str, int, str]]
    places: frozenset[tuple[str, int, str]]


def rewritten(texts: Mapping[str, str], change: Change | None) -> Rewritten | None:
    """The files of a program after a change, without remarks; None where there is nothing to change. `None` for the
    change gives the program as it is, laid out as the changed ones are.
    """
    found, changed = Rewritten({}, {}, set()), change is None
    imported = {path: _imported(text) for path, text in texts.items() if path.endswith(".py")}
    for path, text in texts.items():
        if not path.endswith(".py"):
            found.texts[path], found.lines[path] = text, [*range(text.count("\n") + 2)]
            continue
        module = ast.parse(text)
        elsewhere = [names for other, names in imported.items() if other != path]
        module.imported_elsewhere = frozenset().union(*elsewhere)  # type: ignore[attr-defined]
        if change is not None:
            changed |= change(module)
            ast.fix_missing_locations(module)
            found.cooled.update((path, part.lineno) for part in _statements(module) if hasattr(part, "cooled"))
        found.texts[path] = ast.unparse(module) + "\n"
        found.lines[path] = _lines(module, found.texts[path])
    return found if changed else None


def told(program: Rewritten, rules: list[type[Rule]]) -> Told:
    """What rules say of a program."""
    findings = testing.checked(program.texts, [rule() for rule in rules]).findings
    at = program.lines
    said = {each: (each.path, at[each.path][each.span.line], each.code) for each in findings}
    return Told(
        frozenset(said.values()),
        frozenset(key for each, key in said.items() if each.impact is Impact.LOW),
        frozenset((hop.path, at[hop.path][hop.line], each.code) for each in findings for hop in each.related),
    )


def _lines(module: ast.Module, text: str) -> list[int]:
    """For each line of a text, the line that the statement on it has in the tree that the text was made of."""
    again = ast.parse(text)
    found = [0] * (text.count("\n") + 2)
    for old, new in zip(_statements(module), _statements(again), strict=True):
        for line in range(new.lineno, (new.end_lineno or new.lineno) + 1):
            found[line] = old.lineno
    return found


def _imported(text: str) -> frozenset[str]:
    """The names that a file imports or reads as attributes."""
    nodes = [*ast.walk(ast.parse(text))]
    names = {alias.name for each in nodes if isinstance(each, ast.ImportFrom) for alias in each.names}
    return frozenset(names | {each.attr for each in nodes if isinstance(each, ast.Attribute)})


def _statements(module: ast.Module) -> list[ast.stmt]:
    """Outer ones before inner ones."""
    return [node for node in ast.walk(module) if isinstance(node, ast.stmt)]
