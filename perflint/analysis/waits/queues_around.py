"""The device's queue around a node, as it is and as it would be, with what the callers of its function have left in it.

Where a function begins, summaries know the queue by names (`device_queue.functions`). What they do not know, the values
of its callers tell: that a batch is copied to the device there, that a mask selects. A least fixed point over the calls
that lead to a function, up to the loops whose iterations are steps: it leans on no answer about callees but summaries.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.device_queue import transfer
from perflint.analysis.device_queue.functions import Entry, solve
from perflint.analysis.device_queue.queue import DeviceQueue
from perflint.analysis.device_queue.transfer import Transfer
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import Scope
from perflint.analysis.waits.called_functions import (
    change_but_copies,
    change_of,
    change_that_stays,
    places_of,
    queue_of,
    step_loop_around,
)
from perflint.ir.summary import MODULE
from perflint.syntax.tree import FUNCTIONS

__all__ = ["Queues", "queues_around"]

_Change = Callable[[ast.AST, FileFacts], Transfer]
_Loop = ast.For | ast.AsyncFor | ast.While
_FULL = Entry(transfer.FULL)
_CHANGES: tuple[_Change, ...] = (change_of, change_but_copies, change_that_stays)


class Queues(NamedTuple):
    """The queue of a function as it is; as it would be if no copy to the device waited; if only what stays did. The
    last two are for what is left out where they are empty: of callers they know what names tell, and no more.
    """

    all: DeviceQueue
    but_copies: DeviceQueue
    staying: DeviceQueue


def queues_around(node: ast.AST, ctx: FileFacts) -> Queues:
    """The queue of the function around `node`, seen from the loop over steps around it, if there is one."""
    loop = step_loop_around(node, ctx)
    return ctx.once(_in_function, ctx.control_flow(node).scope) if loop is None else ctx.once(_in_loop, loop)


def _in_loop(loop: _Loop, ctx: FileFacts) -> Queues:
    graph = ctx.control_flow(loop)
    return Queues(*(queue_of(graph, change, ctx, loop=loop) for change in _CHANGES))


def _in_function(scope: ast.AST, ctx: FileFacts) -> Queues:
    body = scope.body  # type: ignore[attr-defined]
    first = body[0] if isinstance(body, list) else body
    graph, place = ctx.control_flow(first), ctx.scope(first)
    named, told = partial(_named, place, ctx), partial(ctx.once(_left_by_callers, ctx.tree.module).entry, place)
    # So many waits in a row cost something, whatever each of them waits for.
    left = named if ctx.program.runs_several_times(place) else told
    changes = zip(_CHANGES, (left, named, named), strict=True)
    return Queues(*(queue_of(graph, change, ctx, entry=entry) for change, entry in changes))


def _named(place: Scope, ctx: FileFacts) -> Entry:
    return ctx.program.queue_at_start(place).entry


def _left_by_callers(_: ast.AST, ctx: FileFacts) -> _Left:
    return _Left(ctx)


class _Left:
    """What callers leave in the queue, by the values of their files."""

    def __init__(self, ctx: FileFacts) -> None:
        self._ctx = ctx
        self._entries: dict[Scope, Entry | None] = {}

    def entry(self, scope: Scope) -> Entry:
        if scope not in self._entries:
            solve(scope, self._leant_on, self._of_ways, None, self._entries)
        return self._entries[scope] or _FULL

    def _leant_on(self, scope: Scope) -> list[Scope]:
        start = self._ctx.program.queue_at_start(scope)
        if start.entry.launched < transfer.FULL:
            return []
        return [edge.caller for edge in start.ways if (call := self._call(edge)) and step_loop_around(*call) is None]

    def _of_ways(self, scope: Scope) -> Entry | None:
        start = self._ctx.program.queue_at_start(scope)
        if start.entry.launched < transfer.FULL or not start.ways:
            return start.entry
        found: Entry | None = None
        for edge in start.ways:
            state = self._behind(edge)
            if state is not None:
                found = state if found is None else found.join(state)
        return found

    def _behind(self, edge: Edge) -> Entry | None:
        """The queue before one call; None where nothing is known yet of the function that makes it."""
        found = self._call(edge)
        if found is None:
            return _FULL
        call, there = found
        loop = step_loop_around(call, there)
        if loop is not None:
            queue = there.once(_in_loop, loop).all
        else:
            entry = self._entries.get(edge.caller)
            if entry is None:
                return None
            queue = queue_of(there.control_flow(call), change_of, there, entry=lambda: entry)
        state = queue.before(call)
        return _FULL if state.is_full else Entry(state.launched, tuple(places_of(state, there)))

    def _call(self, edge: Edge) -> tuple[ast.Call, FileFacts] | None:
        there = self._ctx.at(edge.caller.path)
        if there is None:
            return None
        call = _calls_of(edge.caller.function, there).get(edge.index)
        return None if call is None else (call, there)


def _calls_of(name: str, ctx: FileFacts) -> dict[int, ast.Call]:
    if name == MODULE:
        return ctx.once(_calls_in, ctx.tree.module)
    function = ctx.inference.classes.function_node(name)
    return ctx.once(_calls_in, function) if isinstance(function, FUNCTIONS) else {}


def _calls_in(scope: ast.AST, ctx: FileFacts) -> dict[int, ast.Call]:
    """The calls of a function by their place among those of its facts."""
    calls = [node for statement in scope.body for node in ctx.walk(statement) if isinstance(node, ast.Call)]  # type: ignore[attr-defined]
    return {index: call for call in calls if (index := ctx.call_index(call)) is not None}
