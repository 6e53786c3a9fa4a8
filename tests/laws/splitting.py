"""A program of one file as one of several: each function and class of the file in a module of its own, imported."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NamedTuple

_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


class Split(NamedTuple):
    """The files of a program, and for each the line of the one file that each of its lines was."""

    texts: dict[str, str]
    lines: dict[str, list[int]]


def split(text: str, name: str = "main") -> Split | None:
    """A program of files that all have one name, which may say what they are for, in folders. None for what cannot be
    taken apart: functions that set globals, names that are bound twice, star imports.
    """
    module = ast.parse(text)
    defined = {item.name: item for item in module.body if isinstance(item, _DEFINED)}
    bound = [name for item in module.body for name in _bound(item)]
    if len(set(bound)) < len(bound) or len(defined) < 2 or "*" in bound or "__all__" in bound:
        return None
    if any(isinstance(part, ast.Global) for part in ast.walk(module)) or "__file__" in text:
        return None
    lines = text.split("\n")
    imports = [item for item in module.body if _only_imports(item)]
    imported = {each for item in imports for each in _bound(item)}
    folders = {each: f"of_{each.lower()}" if each in defined else "program" for each in bound if each not in imported}
    homes = {each: f"{folder}/{name}" for each, folder in folders.items()}
    found = Split({}, {})
    for each, item in defined.items():
        _write(f"{homes[each]}.py", [item], imports, homes, lines, found)
    rest = [item for item in module.body if item not in imports and item not in defined.values()]
    _write(f"program/{name}.py", rest, imports, homes, lines, found, also=defined)
    return found if len(found.texts) == len(defined) + 1 else None


def _write(
    path: str,
    items: Iterable[ast.stmt],
    imports: Iterable[ast.stmt],
    homes: dict[str, str],
    lines: list[str],
    found: Split,
    also: Iterable[str] = (),
) -> None:
    kept = [*items]
    used = {part.id for item in kept for part in ast.walk(item) if isinstance(part, ast.Name)} | {*also}
    written: list[str] = []
    numbers: list[int] = []
    for each in sorted(used & homes.keys()):
        if f"{homes[each]}.py" != path:
            written.append(f"from {homes[each].replace('/', '.')} import {each}")
            numbers.append(0)
    for item in sorted([*imports, *kept], key=lambda one: one.lineno):
        decorators = getattr(item, "decorator_list", [])
        first = min([item.lineno, *(one.lineno for one in decorators)])
        # Remarks above a statement belong to it.
        while first > 1 and lines[first - 2].lstrip().startswith("#"):
            first -= 1
        written += lines[first - 1 : item.end_lineno]
        numbers += range(first, (item.end_lineno or first) + 1)
    found.texts[path] = "\n".join([*written, ""])
    found.lines[path] = [0, *numbers]


def _only_imports(item: ast.stmt) -> bool:
    """Whether a statement imports and does nothing else: also one thing, and another where that is not there."""
    if isinstance(item, ast.Try):
        parts = [*item.body, *(part for handler in item.handlers for part in handler.body)]
        return not (item.orelse or item.finalbody) and all(isinstance(part, _IMPORTS) for part in parts)
    return isinstance(item, _IMPORTS)


def _bound(item: ast.stmt) -> list[str]:
    """The names that a statement of a module binds."""
    if isinstance(item, ast.Try) and _only_imports(item):
        return sorted({name for part in item.body for name in _bound(part)})
    if isinstance(item, _DEFINED):
        return [item.name]
    if isinstance(item, _IMPORTS):
        return [(each.asname or each.name).partition(".")[0] for each in item.names]
    stores = (part for part in ast.walk(item) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))
    return sorted({part.id for part in stores})
