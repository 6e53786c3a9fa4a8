"""What `**options` hand to a call: dicts that are written out, joined and filled before it, followed by dataflow."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import has_unpacking, keyword
from perflint.syntax.bindings import Definition

_Options = dict[str, ast.expr]
_DEEPEST = 4
#: So many definitions of a name are looked at.
_MOST = 8
#: Methods that leave a dict as it is.
_READING = frozenset({"get", "items", "keys", "values", "copy"})


def spread_options(call: ast.Call, ctx: FileFacts) -> _Options | None:
    """The options that a call is given by `**`; None where some may be unseen."""
    if any(isinstance(item, ast.Starred) for item in call.args):
        return None
    found: _Options = {}
    for item in call.keywords:
        if item.arg is None:
            held = _held(item.value, call, ctx, _DEEPEST)
            if held is None:
                return None
            found.update(held)
    return found


def option_of(call: ast.Call, name: str, ctx: FileFacts) -> ast.expr | None:
    """The value that a call gives by a name, or in a dict that it spreads; None where neither is seen."""
    found = keyword(call, name)
    if found is None and call.keywords and has_unpacking(call):
        return (spread_options(call, ctx) or {}).get(name)
    return found


def hides_options(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call may be given options that cannot be seen."""
    return has_unpacking(call) and spread_options(call, ctx) is None


def _held(value: ast.expr, call: ast.Call, ctx: FileFacts, depth: int) -> _Options | None:
    if depth == 0:
        return None
    if isinstance(value, ast.Dict):
        return _written(value, call, ctx, depth)
    if isinstance(value, ast.IfExp):
        return _chosen(value, call, ctx, depth)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
        left, right = (_held(side, call, ctx, depth - 1) for side in (value.left, value.right))
        return None if left is None or right is None else {**left, **right}
    if isinstance(value, ast.Call) and ctx.target(value.func) == "dict":
        found: _Options = {}
        for given in value.args:
            held = _held(given, call, ctx, depth - 1)
            if held is None:
                return None
            found.update(held)
        own = spread_options(value, ctx) if has_unpacking(value) else {}
        return None if own is None else {**found, **own, **_named(value)}
    return _bound(value, call, ctx, depth) if isinstance(value, ast.Name) else None


def _chosen(value: ast.IfExp, call: ast.Call, ctx: FileFacts, depth: int) -> _Options | None:
    """`{"num_workers": 4, "pin_memory": True} if cuda else {}`: where there are any, it is these."""
    arms = [arm for arm in (value.body, value.orelse) if not (isinstance(arm, ast.Dict) and not arm.keys)]
    found = [_held(arm, call, ctx, depth - 1) for arm in arms]
    return found[0] if len(found) == 1 else _either(*found) if found else {}


def _named(call: ast.Call) -> _Options:
    return {item.arg: item.value for item in call.keywords if item.arg is not None}


def _written(value: ast.Dict, call: ast.Call, ctx: FileFacts, depth: int) -> _Options | None:
    found: _Options = {}
    for key, item in zip(value.keys, value.values):
        if key is None:
            held = _held(item, call, ctx, depth - 1)
            if held is None:
                return None
            found.update(held)
        elif isinstance(key, ast.Constant) and isinstance(key.value, str):
            found[key.value] = item
        else:
            return None
    return found


def _bound(name: ast.Name, call: ast.Call, ctx: FileFacts, depth: int) -> _Options | None:
    """What a name holds at the call: each of its definitions, and what is stored into it from there."""
    definitions = ctx.inference.flow.definitions(name)
    if not 0 < len(definitions) <= _MOST:
        return None
    found: _Options | None = None
    for place, definition in enumerate(definitions):
        if definition.value is None or not isinstance(definition.node, ast.Assign):
            return None
        held = _filled(name, definition, call, ctx, depth)
        found = held if place == 0 else _either(found, held)
        if found is None:
            return None
    return found


def _filled(name: ast.Name, made: Definition, call: ast.Call, ctx: FileFacts, depth: int) -> _Options | None:
    """What one definition of a name comes to at the call."""
    assert made.value is not None
    found = _held(made.value, call, ctx, depth - 1)
    region = ctx.tree.function_of(name) or ctx.tree.module
    for use in sorted(ctx.tree.named(name.id, region), key=lambda part: (part.lineno, part.col_offset)):
        if found is None or use is name or isinstance(use.ctx, ast.Store):
            continue
        if made in ctx.inference.flow.definitions(use):
            found = _after(use, made, found, call, ctx, depth)
    return found


def _either(one: _Options | None, other: _Options | None) -> _Options | None:
    """The options of a call that is given one of two dicts: where these differ, those of the one that gives more."""
    if one is None or other is None:
        return None
    pairs = [(key, one.get(key), other.get(key)) for key in {**one, **other}]
    if any(key == "dataset" and not _are_alike(value, rival) for key, value, rival in pairs):
        return None  # a loader of one of two data sets: nothing tells for which the rest is
    found = (
        (key, rival if value is None or (rival is not None and _is_off(value)) else value)
        for key, value, rival in pairs
    )
    return {key: value for key, value in found if value is not None}


def _are_alike(one: ast.expr | None, other: ast.expr | None) -> bool:
    return one is not None and other is not None and ast.dump(one) == ast.dump(other)


def _is_off(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and not value.value


def _after(
    use: ast.Name, made: Definition, found: _Options, call: ast.Call, ctx: FileFacts, depth: int
) -> _Options | None:
    """The same after one use of the name: None where nobody sees what it does."""
    parent = ctx.tree.parent(use)
    if isinstance(parent, ast.keyword) and parent.arg is None:
        return found  # handed to another call, which makes a dict of its own
    flow = ctx.control_flow(call)
    if not flow.reaches(use, call):
        return found
    stored = _stored(use, parent, call, ctx, depth)
    if stored is None or not stored:
        return None if stored is None else found
    always = flow.dominates(use, call) or (
        ctx.inference.flow.definitions(use) == (made,) and flow.post_dominates(use, made.node)
    )
    return {**found, **stored} if always else _either({**found, **stored}, found)


def _stored(use: ast.Name, parent: ast.AST | None, call: ast.Call, ctx: FileFacts, depth: int) -> _Options | None:
    """What a use of the name stores into the dict: nothing where it only reads; None where that is not known."""
    if isinstance(parent, ast.Subscript) and parent.value is use:
        if isinstance(parent.ctx, ast.Load):
            return {}
        statement, key = ctx.tree.parent(parent), parent.slice
        if not isinstance(statement, ast.Assign) or not isinstance(key, ast.Constant):
            return None
        return {str(key.value): statement.value}
    asked = ctx.tree.parent(parent) if isinstance(parent, ast.Attribute) else None
    if not isinstance(parent, ast.Attribute) or not isinstance(asked, ast.Call) or asked.func is not parent:
        return None
    if parent.attr in _READING:
        return {}
    if parent.attr != "update" or len(asked.args) > 1 or has_unpacking(asked):
        return None
    held = _held(asked.args[0], call, ctx, depth - 1) if asked.args else {}
    return None if held is None else {**held, **_named(asked)}
