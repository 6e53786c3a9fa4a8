"""One binding after the other: `loss, _ = model(x), None` is `loss = model(x)` and `_ = None` in the tree, where no
value has to do with the targets before it, so that nobody who asks what a value is given to has to know of pairs.

The first of the statements begins where the one in the text does, the others where their values do. `written` of each
is that one, for edits: it alone has a place of its own.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Sequence

from perflint.syntax.walk import HOLDING, block_with, blocks, walked

_PAIRS = re.compile(r"^[ \t]*[^\W\d][\w.]*, ?[\w., ]+=[^=]", re.MULTILINE)
_FAR = 1 << 30
_LEAVE = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Starred)


def bind_plainly(module: ast.Module, text: str) -> None:
    """Write the assignments of a file that give several values to as many targets as one for each."""
    lines, at, line = [], 0, 1
    for match in _PAIRS.finditer(text):
        line, at = line + text.count("\n", at, match.start()), match.start()
        lines.append(line)
    if lines:
        _in_blocks(module, lines)


def is_part(node: ast.AST) -> bool:
    """Whether a statement of the tree is but a part of one of the text."""
    return hasattr(node, "written")


def as_written(statement: ast.stmt) -> ast.stmt:
    """The statement of the text that a statement of the tree is a part of."""
    return getattr(statement, "written", statement)


def _in_blocks(node: ast.AST, lines: Sequence[int]) -> None:
    for each in blocks(node):
        if each.__class__ in HOLDING:
            if each.__class__ is ast.match_case or _holds_any(each, lines):
                _in_blocks(each, lines)
        elif each.__class__ is ast.Assign and (parts := _parts(each)) and _holds_any(each, lines):
            block = block_with(node, each)
            at = block.index(each)
            block[at : at + 1] = parts


def _holds_any(node: ast.AST, lines: Sequence[int]) -> bool:
    """Whether a node is on one of some lines."""
    first, last = node.lineno, node.end_lineno or _FAR  # type: ignore[attr-defined]
    place = bisect_left(lines, first)
    return place < len(lines) and lines[place] <= last


def _parts(node: ast.Assign) -> list[ast.stmt]:
    target, value = node.targets[0], node.value
    if not isinstance(target, ast.Tuple) or not isinstance(value, (ast.Tuple, ast.List)) or len(node.targets) > 1:
        return []
    if len(target.elts) != len(value.elts) or not _are_independent(target.elts, value.elts):
        return []
    made: list[ast.stmt] = []
    for i, (place, each) in enumerate(zip(target.elts, value.elts)):
        part, last = ast.Assign([place], each), each if i + 1 < len(value.elts) else node
        start = node if i == 0 else each
        part.lineno, part.col_offset = start.lineno, start.col_offset
        part.end_lineno, part.end_col_offset = last.end_lineno, last.end_col_offset
        part.written = node  # type: ignore[attr-defined]
        made.append(part)
    return made


def _are_independent(targets: Sequence[ast.expr], values: Sequence[ast.expr]) -> bool:
    """Whether no value reads what a target before it is given."""
    given: set[str] = set()
    is_kept = False
    for target, value in zip(targets, values):
        for part in walked(value):
            if isinstance(part, (ast.Name, ast.Attribute)) and _name(part) in given:
                return False
            # What is called may read an attribute that was set before.
            if isinstance(part, _LEAVE) or (is_kept and isinstance(part, ast.Call)):
                return False
        if not isinstance(target, (ast.Name, ast.Attribute)):
            return False
        given.add(_name(target))
        is_kept |= isinstance(target, ast.Attribute)
    return True


def _name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr
