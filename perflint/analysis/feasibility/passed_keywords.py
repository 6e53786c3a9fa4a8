"""Keywords that the calls of a file pass."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from perflint.analysis.file_facts import FileFacts
from perflint.syntax.walk import walk


def file_passes(ctx: FileFacts, names: Iterable[str]) -> bool:
    """Whether any call of the file passes one of these keywords, other than as False or None."""
    wanted = frozenset(names)
    return any(
        isinstance(node, ast.keyword)
        and node.arg in wanted
        and not (isinstance(node.value, ast.Constant) and node.value.value in (None, False))
        for node in walk(ctx.tree.module)
    )
