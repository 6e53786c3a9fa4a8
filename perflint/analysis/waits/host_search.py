"""Loops that generate from a state on the host: each turn sends what the host has decided and reads what the device
made of it, so that one read and one copy for each turn cannot be spared.
"""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.phases.phase import Phase
from perflint.analysis.transfers.data_copies import copied_at
from perflint.analysis.values.implicit_copies import COPYING_NAMES
from perflint.finding import Heat
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk


def is_read_for_search(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether such a loop reads all values of a result at once: not those of one row, or a single number."""
    if not isinstance(node, ast.Call) or callee_name(node) not in _WHOLE or not in_host_search(node, ctx):
        return False
    loops = [loop for loop in ctx.loops(node) if isinstance(loop, ast.For)][:-1]
    rows = {name.id for loop in loops for name in walk(loop.target) if isinstance(name, ast.Name)}
    parts = (part for part in walk(node) if isinstance(part, ast.Subscript))
    return not any(isinstance(name, ast.Name) and name.id in rows for part in parts for name in walk(part.slice))


def in_host_search(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a loop around `node` generates, and sends to the device what the host has put together on each turn."""
    loops = [loop for loop in ctx.loops(node) if ctx.body_heat(loop) >= Heat.STEP]
    if not loops or ctx.phase(node).phase is not Phase.GENERATE:
        return False
    return any(ctx.once(_both_ways, loop) for loop in loops)


_WHOLE = frozenset({"tolist", "cpu"})


def _both_ways(loop: ast.For | ast.AsyncFor | ast.While, ctx: FileFacts) -> bool:
    calls = [part for statement in loop.body for part in ctx.walk(statement) if isinstance(part, ast.Call)]
    return any(callee_name(call) in _WHOLE for call in calls) and any(
        callee_name(call) in COPYING_NAMES and _sends_decided(call, loop, ctx) for call in calls
    )


def _sends_decided(call: ast.Call, loop: ast.For | ast.AsyncFor | ast.While, ctx: FileFacts) -> bool:
    """Whether a call sends data of the host that the loop has made or changed."""
    copy = copied_at(call, ctx)
    if copy is None:
        return False
    names = {part.id for part in walk(copy.data) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
    stores = (part for statement in loop.body for part in walk(statement) if isinstance(part, ast.Name))
    return any(part.id in names and isinstance(part.ctx, ast.Store) for part in stores)
