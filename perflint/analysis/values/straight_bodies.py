"""Bodies of loops as straight lines: one for each way through tests that come out the same in every turn."""

from __future__ import annotations

import ast
from collections.abc import Collection

from perflint.analysis.phases.loop_purpose import names_in
from perflint.syntax.walk import walk

#: How many ways are looked at.
_MOST = 4


def straight_bodies(loop: ast.For) -> list[list[ast.stmt]]:
    """The statements of a turn, by way; none where a test depends on the turn, or there are too many ways."""
    changing = {part.id for part in walk(loop) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return _ways(loop.body, changing)


def _ways(body: list[ast.stmt], changing: Collection[str]) -> list[list[ast.stmt]]:
    found: list[list[ast.stmt]] = [[]]
    for statement in body:
        if not isinstance(statement, ast.If):
            further = [[statement]]
        elif set(changing) & set(names_in(statement.test)) or _calls(statement.test):
            return []
        else:
            further = [*_ways(statement.body, changing), *_ways(statement.orelse, changing)]
            if not further:
                return []
        found = [[*before, *after] for before in found for after in further]
        if len(found) > _MOST:
            return []
    return found


def _calls(test: ast.expr) -> bool:
    return any(isinstance(part, ast.Call) for part in walk(test))
