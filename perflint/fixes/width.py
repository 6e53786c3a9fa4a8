"""Lines that a fix made too long, broken as a formatter breaks them: at the brackets of the statement's call.

Only in files none of whose code was too long before, as ruff format and black leave them; others keep their own style.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perflint.errors import SourceError
from perflint.finding import Applicability, Edit, Fix
from perflint.fixes.apply import apply_fixes
from perflint.fixes.arguments import Arguments
from perflint.fixes.layout import Layout, UnreachableError
from perflint.syntax.file import SourceFile
from perflint.syntax.parse import parse
from perflint.syntax.tree import Tree

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: Of ruff format and black.
DEFAULT = 88


def width_for(folder: Path) -> int:
    """The longest line the project's formatter leaves, by the nearest configuration of ruff or black above `folder`."""
    for place in (folder, *folder.parents):
        for name in (".ruff.toml", "ruff.toml", "pyproject.toml"):
            given = _width_in(_read(place / name), is_of_project=name == "pyproject.toml")
            if given:
                return given
    return DEFAULT


def _read(file: Path) -> dict[str, Any]:
    try:
        table: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return table


def _width_in(table: dict[str, Any], *, is_of_project: bool) -> int:
    tools = table.get("tool", {}) if is_of_project else {"ruff": table}
    for name in ("ruff", "black"):
        own = tools.get(name, {}) if isinstance(tools, dict) else {}
        given = own.get("line-length", own.get("line_length")) if isinstance(own, dict) else None
        if isinstance(given, int) and given > 0:
            return given
    return 0


def broken_at(before: SourceFile, text: str, width: int) -> str:
    """`text`, which fixes made of `before`, with the calls broken that no longer fit into `width` columns."""
    known = set(before.lines)
    if text == before.text or any(len(line) > width for line in known if not line.lstrip().startswith("#")):
        return text
    source = SourceFile(before.path, text, encoding=before.encoding, bom=before.bom)
    if all(len(line) <= width for line in source.lines):
        return text
    try:
        layout = Layout(Tree(source, parse(source)))
    except (SourceError, SyntaxError):
        return text
    edits = [edit for call in _calls(layout, width) if (edit := _broken(call, layout, width)) is not None]
    return apply_fixes(source, [Fix("Break lines", Applicability.SAFE, (edit,)) for edit in edits]).text


def _calls(layout: Layout, width: int) -> Iterator[ast.Call]:
    """The calls that are the whole value of a statement, and have a line that is too long."""
    for statement in ast.walk(layout.tree.module):
        value = getattr(statement, "value", None) if isinstance(statement, ast.stmt) else None
        if isinstance(value, ast.Await):
            value = value.value
        if isinstance(value, ast.Call) and any(
            len(line) > width for line in layout.lines[value.lineno - 1 : value.end_lineno]
        ):
            yield value


def _broken(call: ast.Call, layout: Layout, width: int) -> Edit | None:
    """The arguments on a line of their own, or on one each with a comma behind the last."""
    try:
        arguments = Arguments(layout, call)
    except UnreachableError:
        return None
    start, end = arguments.open + 1, arguments.close
    inside = layout.code[start:end]
    if not arguments.each or layout.has_comment(start, end) or "\n" in inside.strip() or '"""' in inside:
        return None
    outer = layout.indent(layout.line_start(layout.range(call)[0]))
    inner = f"{outer}{layout.indent_unit}"
    parts = [layout.code[item.start : item.end] for item in arguments.each]
    joined = ", ".join(parts)
    fits = len(inner.expandtabs(4)) + len(joined) <= width and arguments.each[-1].comma is None and "\n" not in inside
    if fits or layout.is_bare_generator(arguments.each[0].node):
        return layout.edit(start, end, f"\n{inner}{joined}\n{outer}")
    lines = "".join(f"\n{inner}{part}," for part in parts)
    return layout.edit(start, end, f"{lines}\n{outer}")
