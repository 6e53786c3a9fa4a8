"""Imports whose last use a fix took away: they go with it."""

from __future__ import annotations

import ast
import sys

from perflint.errors import SourceError
from perflint.finding import Applicability, Edit, Fix
from perflint.fixes.apply import apply_fixes
from perflint.fixes.layout import NOWHERE, Layout, UnreachableError
from perflint.fixes.names import Names
from perflint.fixes.statements import Statements
from perflint.syntax.file import SourceFile
from perflint.syntax.parse import parse
from perflint.syntax.tree import Tree


def without_unused_imports(before: SourceFile, text: str) -> str:
    """`text`, which fixes made of `before`, without imports of the standard library that only `before` uses.

    Left where they are: imports of packages that hand on names (`__init__.py`, `__all__`), those with a comment
    (`# noqa`, and what else it may say), in a `try` or an `if`, and any word of them that still stands in the text.
    """
    if text == before.text or before.path.endswith("__init__.py") or "__all__" in text:
        return text
    source = SourceFile(before.path, text, encoding=before.encoding, bom=before.bom)
    try:
        lost = _imported(before) - {""}
        layout = Layout(Tree(source, parse(source)))
    except (SourceError, SyntaxError):
        return text
    words_before = Names(Layout(Tree(before, parse(before)))).counts
    words = Names(layout).counts
    unused = {name for name in lost if words.get(name, 0) == 1 < words_before.get(name, 0)}
    edits = [
        edit
        for statement in layout.tree.module.body
        if isinstance(statement, ast.Import) and len(statement.names) == 1 and _bound(statement) in unused
        for edit in _deletion(statement, layout)
        if edit is not NOWHERE
    ]
    return apply_fixes(source, [Fix("Delete unused imports", Applicability.SAFE, tuple(edits))]).text if edits else text


def _imported(source: SourceFile) -> set[str]:
    """The names that plain imports of the standard library bind at the top of a file."""
    return {_bound(item) for item in parse(source).body if isinstance(item, ast.Import) and len(item.names) == 1}


def _bound(statement: ast.Import) -> str:
    """`gc` for `import gc`; empty for what is no module of the standard library, or goes by another name."""
    alias = statement.names[0]
    return alias.name if alias.asname is None and alias.name in sys.stdlib_module_names else ""


def _deletion(statement: ast.Import, layout: Layout) -> list[Edit]:
    statements = Statements(layout)
    try:
        if not statements.stands_alone(statement) or statements.loses_comment(statement):
            return []
        return [statements.delete(statement)]
    except UnreachableError:
        return []
