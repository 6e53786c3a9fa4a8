"""Kinds of the containers that are written out, item by item or by a comprehension."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeAlias

from perflint.kinds import operations
from perflint.kinds.frames import Frame
from perflint.kinds.kind import UNKNOWN, Kind, Tag, join, mapping, sequence

_Eval: TypeAlias = "Callable[[ast.expr, Frame | None], Kind]"
_MOVES = ("to", "cuda")


def kind_of(node: ast.expr, frame: Frame | None, evaluate: _Eval) -> Kind:
    """What a list, a mapping or a comprehension holds; unknown for anything else."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        if any(isinstance(item, ast.Starred) for item in node.elts):
            return sequence(join(_element(item, frame, evaluate) for item in node.elts))
        items = [evaluate(item, frame) for item in node.elts]
        return sequence(items=items) if items else sequence(qualified="empty")
    if isinstance(node, ast.Dict):
        return _dict(node, frame, evaluate)
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        return sequence(evaluate(node.elt, frame))
    if isinstance(node, ast.DictComp):
        return mapping(evaluate(node.value, frame))
    return UNKNOWN


def arms(node: ast.IfExp) -> tuple[ast.expr, ...]:
    """The arms of a conditional that tell what it gives. Of `value.to(device) if torch.is_tensor(value) else value` it
    is the one that moves: what is left as it is has no values to wait for.
    """
    if isinstance(node.orelse, ast.Name):
        moved = node.body
        moves = isinstance(moved, ast.Call) and isinstance(moved.func, ast.Attribute) and moved.func.attr in _MOVES
        while moves and isinstance(moved, ast.Call) and isinstance(moved.func, ast.Attribute):
            moved = moved.func.value
        if moves and isinstance(moved, ast.Name) and moved.id == node.orelse.id:
            return (node.body,)
    return node.body, node.orelse


def _element(item: ast.expr, frame: Frame | None, evaluate: _Eval) -> Kind:
    if isinstance(item, ast.Starred):
        return operations.iterate(evaluate(item.value, frame))
    return evaluate(item, frame)


def _dict(node: ast.Dict, frame: Frame | None, evaluate: _Eval) -> Kind:
    items: list[tuple[str, Kind]] = []
    rest: list[Kind] = []
    for key, value in zip(node.keys, node.values):
        kind = evaluate(value, frame)
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            items.append((key.value, kind))
        elif key is None:
            rest.append(kind.element or UNKNOWN if kind.tag is Tag.MAPPING else operations.index(kind, None))
        else:
            rest.append(kind)
    if not rest:
        return mapping(items=items)
    return mapping(join([*rest, *(kind for _, kind in items)])).but(items=tuple(items))
