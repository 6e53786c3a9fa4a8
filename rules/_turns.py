"""Loops that go through a tensor one element at a time, and what they read on the host in each turn."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from perflint.api import Context, Tag, callee_name

from ._asking import is_asked, leaves, tests
from ._loops import names_in
from ._waits import certainty_on_device, device_read, is_exceptional, works_on_host

_PAIRING = ("enumerate", "zip", "reversed", "tqdm")
_SIZES = ("size", "shape")


class TurnRead(NamedTuple):
    """What a turn reads on the host, and the tensor that the loop goes through, as it is written."""

    at: ast.expr
    tensor: str


def read_by_turns(loop: ast.For, ctx: Context) -> TurnRead | None:
    """The first read of an element in the body of a loop over a device tensor; None where there is none."""
    gone_through = _gone_through(loop, ctx)
    if gone_through is None or works_on_host(loop, ctx):
        return None
    own = _from_turn(loop)
    for node in _body(loop, ctx):
        for read in _reads(node, ctx):
            if set(names_in(read)) & own and not is_exceptional(read, ctx):
                return TurnRead(read, gone_through)
    return None


def _gone_through(loop: ast.For, ctx: Context) -> str | None:
    """The tensor whose elements or rows a loop goes through: `for x in t`, `enumerate(t)`, `range(len(t))`."""
    turns = loop.iter
    while isinstance(turns, ast.Call) and isinstance(turns.func, ast.Name) and turns.args:
        name = turns.func.id
        if name == "range":
            return _sized(turns.args[1] if len(turns.args) > 1 else turns.args[0], ctx)
        if name not in _PAIRING:
            break
        if name == "zip":
            found = [item for item in turns.args if certainty_on_device(item, ctx) is not None]
            return ctx.text(found[0]) if found else None
        turns = turns.args[0]
    return ctx.text(turns) if certainty_on_device(turns, ctx) is not None else None


def _sized(stop: ast.expr, ctx: Context) -> str | None:
    """The tensor whose size is the number of turns: `len(t)`, `t.shape[0]`, `t.size(0)`, `t.size()[0]`."""
    if isinstance(stop, ast.Name):
        found = ctx.inference.flow.definitions(stop)
        value = found[0].value if len(found) == 1 else None
        return _sized(value, ctx) if isinstance(value, (ast.Call, ast.Subscript)) else None
    if isinstance(stop, ast.Call) and isinstance(stop.func, ast.Name) and stop.func.id == "len" and stop.args:
        return ctx.text(stop.args[0]) if ctx.kind(stop.args[0]).tag is Tag.TENSOR else None
    while isinstance(stop, (ast.Subscript, ast.Call)):
        stop = stop.value if isinstance(stop, ast.Subscript) else stop.func
    if (
        isinstance(stop, ast.Attribute)
        and stop.attr in _SIZES
        and ctx.kind(stop.value).tag in (Tag.TENSOR, Tag.UNKNOWN)
    ):
        return ctx.text(stop.value)
    return None


def _from_turn(loop: ast.For) -> set[str]:
    """The names that hold something of one turn: the loop's own, and what is computed from them in its body."""
    own = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and own & set(names_in(node.value)):
            own |= {part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return own


def _body(loop: ast.For, ctx: Context) -> Iterator[ast.AST]:
    """The nodes of one turn; not those of loops in it, which are looked at by themselves."""
    for statement in loop.body:
        for node in ctx.walk(statement):
            around = next((outer for outer in ctx.loops(node)), None) if isinstance(node, ast.expr) else loop
            if around is loop:
                yield node


def _reads(node: ast.AST, ctx: Context) -> Iterator[ast.expr]:
    # Rows that are copied whole are fewer than elements, and mostly handed on, to be decoded or printed.
    if isinstance(node, ast.Call) and callee_name(node) not in ("cpu", "to", "tolist"):
        if device_read(node, ctx) is not None:
            yield node
    yield from (leaf for test in tests(node) for leaf in leaves(test) if is_asked(leaf, ctx))
