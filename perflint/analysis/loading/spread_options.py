"""What `**options` hand to a call: dicts that are written out, joined and filled before it, followed by dataflow."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import has_unpacking

_Options = dict[str, ast.expr]
_DEEPEST = 4


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


def hides_options(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call may be given options that cannot be seen."""
    return has_unpacking(call) and spread_options(call, ctx) is None


def _held(value: ast.expr, call: ast.Call, ctx: FileFacts, depth: int) -> _Options | None:
    if depth == 0:
        return None
    if isinstance(value, ast.Dict):
        return _written(value, call, ctx, depth)
    if isinstance(value, ast.IfExp):
        # `{"num_workers": 4, "pin_memory": True} if cuda else {}`: where there are any, it is these.
        arms = [arm for arm in (value.body, value.orelse) if not (isinstance(arm, ast.Dict) and not arm.keys)]
        return _held(arms[0], call, ctx, depth - 1) if len(arms) == 1 else None
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
    """What a name holds at the call: its one definition, and what is stored into it on every way from there."""
    definitions = ctx.inference.flow.definitions(name)
    if len(definitions) != 1 or definitions[0].value is None or not isinstance(definitions[0].node, ast.Assign):
        return None
    found = _held(definitions[0].value, call, ctx, depth - 1)
    region = ctx.tree.function_of(name) or ctx.tree.module
    for use in sorted(ctx.tree.named(name.id, region), key=lambda part: (part.lineno, part.col_offset)):
        if found is None or use is name or isinstance(use.ctx, ast.Store):
            continue
        found = _after(use, found, call, ctx)
    return found


def _after(use: ast.Name, found: _Options, call: ast.Call, ctx: FileFacts) -> _Options | None:
    """The same after one use of the name: None where nobody sees what it does."""
    parent = ctx.tree.parent(use)
    if isinstance(parent, ast.keyword) and parent.arg is None:
        return found  # handed to another call, which makes a dict of its own
    flow = ctx.control_flow(call)
    if not flow.reaches(use, call):
        return found
    if not isinstance(parent, ast.Subscript) or parent.value is not use:
        return None
    if isinstance(parent.ctx, ast.Load):
        return found
    statement, key = ctx.tree.parent(parent), parent.slice
    if not isinstance(statement, ast.Assign) or not isinstance(key, ast.Constant) or not flow.dominates(parent, call):
        return None
    return {**found, str(key.value): statement.value}
