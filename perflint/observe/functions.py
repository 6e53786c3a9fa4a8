"""Which function a line stands in, by its text: evidence about a function holds as long as the text stays the same."""

from __future__ import annotations

import ast
import hashlib
import io
import textwrap
import tokenize
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping

from perflint.observe.trace import Region, Site

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def regions(text: str) -> tuple[Region, ...]:
    """All functions of a file, and its statements outside them, by first line. Empty if it does not parse."""
    tree = parsed(text)
    if tree is None:
        return ()
    lines = _without_comments(text)
    return tuple(sorted(_regions(tree.body, lines), key=lambda one: (one.line, -one.end_line)))


def parsed(text: str) -> ast.Module | None:
    """The tree of a file; None if it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _without_comments(text: str) -> list[str]:
    """The lines of a file without its comments: one that silences a finding changes nothing that was observed."""
    lines = text.splitlines()
    if "#" not in text:
        return lines
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                line, column = token.start
                lines[line - 1] = lines[line - 1][:column]
    except (tokenize.TokenError, SyntaxError, IndexError):
        return text.splitlines()
    return lines


def _regions(body: list[ast.stmt], lines: list[str]) -> Iterator[Region]:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            yield from _regions(statement.body, lines)
            continue
        is_function = isinstance(statement, _FUNCTIONS)
        yield _region(statement, lines)
        for inner in ast.walk(statement):
            if isinstance(inner, _FUNCTIONS) and not (is_function and inner is statement):
                yield _region(inner, lines)


def _region(statement: ast.stmt, lines: list[str]) -> Region:
    first, name = statement.lineno, ""
    if isinstance(statement, _FUNCTIONS):
        name = statement.name
        first = min([first, *(one.lineno for one in statement.decorator_list)])
    last = statement.end_lineno or first
    text = textwrap.dedent("\n".join(line.rstrip() for line in lines[first - 1 : last]))
    return Region(first, last, name, hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16])


def statement_lines(text: str, line: int) -> tuple[int, int]:
    """First and last line of the innermost statement around `line`; of a compound one, those of its header."""
    tree = parsed(text)
    around = [one for one in ast.walk(tree) if isinstance(one, ast.stmt) and _holds(one, line)] if tree else []
    if not around:
        return line, line
    found = max(around, key=lambda one: (one.lineno, -(one.end_lineno or one.lineno)))
    body = getattr(found, "body", None)
    last = body[0].lineno - 1 if isinstance(body, list) and body else found.end_lineno or found.lineno
    return found.lineno, max(last, found.lineno)


def _holds(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or statement.lineno)


def regions_of(texts: Mapping[str, str], lines: Mapping[str, Collection[int]]) -> dict[str, tuple[Region, ...]]:
    """The regions that any of `lines` stands in, for each file (key: path) of `texts`."""
    found: dict[str, tuple[Region, ...]] = {}
    for path, wanted in lines.items():
        if path in texts:
            all_of_file = regions(texts[path])
            found[path] = tuple(one for one in all_of_file if any(one.line <= at <= one.end_line for at in wanted))
    return found


def lines_of(sites: Iterable[Site], ran: Mapping[str, Collection[int]]) -> dict[str, set[int]]:
    """The lines whose functions an observation needs to know: those that ran, of sites, and of their project frames."""
    lines = {path: set(found) for path, found in ran.items()}
    for site in sites:
        lines.setdefault(site.path, set()).add(site.line)
        for frame in site.stack:
            if not frame.library:
                lines.setdefault(frame.path, set()).add(frame.line)
    return lines


def innermost(found: Collection[Region], line: int) -> Region | None:
    """The smallest region that `line` stands in."""
    around = [one for one in found if one.line <= line <= one.end_line]
    return max(around, key=lambda one: (one.line, -one.end_line), default=None)
