"""Names that are given values from others in a region, and the calls that are given those."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.syntax.walk import children, walk

#: What tells of a parameter's shape: numbers of the host, and so is all that is worked out from them.
_SHAPES = frozenset("numel nelement size dim ndim shape stride element_size itemsize dtype device".split())


def derived_names(target: ast.expr, parts: list[ast.AST]) -> set[str]:
    """The loop's own names, and those given a value from them."""
    names = {part.id for part in walk(target) if isinstance(part, ast.Name)}
    for part in parts:
        for statement in walk(part):
            if isinstance(statement, ast.Assign) and mentions_values(statement.value, names):
                names |= {item.id for item in statement.targets if isinstance(item, ast.Name)}
    return names


def calls_on(part: ast.AST, names: set[str]) -> Iterator[ast.Call]:
    """Calls on, or of, something made from the names."""
    for call in walk(part):
        if not isinstance(call, ast.Call):
            continue
        given = [*call.args, call.func.value] if isinstance(call.func, ast.Attribute) else call.args
        if any(mentions_values(value, names) for value in given):
            yield call


def mentions_values(value: ast.AST, names: set[str]) -> bool:
    """Whether values of one of the names are in it, more than their shapes."""
    if isinstance(value, ast.Attribute) and value.attr in _SHAPES:
        return False
    if isinstance(value, ast.Name):
        return value.id in names
    return any(mentions_values(part, names) for part in children(value))
