"""What `f(*parts, **options)` gives, in plain notation, where the tuple and the dict were written out before."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perflint.ir.summary import SPREAD, Value

if TYPE_CHECKING:
    from perflint.ir.growing import Growing

_Args = tuple[Value, ...]
_Keywords = tuple[tuple[str, Value], ...]


def is_spread(node: ast.Call) -> bool:
    """Whether a call is handed something by a star."""
    keywords = node.keywords
    return ast.Starred in map(type, node.args) or (bool(keywords) and any(item.arg is None for item in keywords))


def spread_out(node: ast.Call, args: _Args, keywords: _Keywords, scope: Growing) -> tuple[_Args, _Keywords]:
    """The arguments and keywords of a call with what is spread in its place. What is not seen stays as it is: `""`
    among the keywords for `**options`, and `SPREAD` where arguments are hidden.
    """
    if len(args) == len(node.args) and ast.Starred in map(type, node.args):
        found: list[Value] = []
        for item, value in zip(node.args, args):
            parts = _display(value, "seq", scope) if type(item) is ast.Starred else (value,)
            if parts is None:
                return args, (*_named(keywords, scope), (SPREAD, None))
            found += parts
        args = tuple(found)
    return args, _named(keywords, scope)


def _named(keywords: _Keywords, scope: Growing) -> _Keywords:
    if not any(name == "" for name, _ in keywords):
        return keywords
    found: list[tuple[str, Value]] = []
    for name, value in keywords:
        pairs = _display(value, "map", scope) if name == "" else None
        is_seen = pairs is not None and all(pair[0] != "" for pair in pairs)
        found += pairs if pairs is not None and is_seen else [(name, value)]
    return tuple(found)


def _display(value: Value, form: str, scope: Growing) -> tuple[Value, ...] | None:
    """The items of a tuple or a dict that is written out, or that a name was bound to and nothing else."""
    if type(value) is str:
        held = scope.binds.get(value, ())
        if len(held) != 1 or value in scope.unclear:
            return None
        value = next(iter(held))
    return value[1] if type(value) is tuple and value[0] == form else None
