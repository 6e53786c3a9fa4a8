"""Functions that a loop elsewhere calls once for each item that it goes through."""

from __future__ import annotations

import re

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.few_turns import turns_few_times
from perflint.analysis.invariants.turn_dependence import feeds_itself
from perflint.analysis.names.refs import Scope
from perflint.analysis.naming.loops import OVER_BATCHES
from perflint.analysis.naming.models import CHANGED_BY_RUN
from perflint.analysis.naming.phases import TIMES
from perflint.analysis.values.written_calls import WrittenCalls
from perflint.finding import Confidence
from perflint.ir.summary import FunctionFacts, LoopFacts
from perflint.torch_model.effects import Effect, of_function

_FEW = 10
_WRAPPERS = ("enumerate", "tqdm", "zip", "list", "sorted", "reversed")


def edge_of_items(scope: Scope, given: set[str], held: set[str], ctx: FileFacts) -> Edge | None:
    """The call in a loop that hands a function another item on each turn, by one of the parameters that are given such,
    and the same objects by those that are held.
    """
    params = [
        param.name for param in ctx.program.function(scope).params if param.name.lstrip("=*") not in ("self", "cls")
    ]
    for edge in ctx.program.callers(scope):
        if edge.callback or edge.confidence < Confidence.HIGH or _needs_its_last_turn(edge, ctx):
            continue
        own = _targets_around(edge, ctx)
        if own and not any(own & _names_of(ctx.program.argument(edge, name)) for name in params if name in held):
            if any(
                own & _names_behind(ctx.program.argument(edge, name), edge, ctx) for name in params if name in given
            ):
                return edge
    return None


def _needs_its_last_turn(edge: Edge, ctx: FileFacts) -> bool:
    """Whether the loop around a call hands it what it gave on the turn before, or has few turns at all."""
    caller = ctx.at(edge.caller.path)
    call = WrittenCalls(caller.inference).of(edge) if caller is not None and edge.index >= 0 else None
    if caller is None or call is None:
        return False
    loop = next(iter(caller.loops(call)), None)
    return loop is not None and (feeds_itself(call, loop) or turns_few_times(loop, caller, _FEW))


def _targets_around(edge: Edge, ctx: FileFacts) -> set[str]:
    """The targets of the innermost loop around a call in another function, where its turns are single samples."""
    facts = ctx.program.function(edge.caller)
    index = facts.innermost_loop(edge.context)
    if index is None or _is_busy(facts):
        return set()
    loop = facts.loops[index]
    if _is_attended(index, facts):
        return set()
    # The turns of a `range` are numbers, and a call that is given one is not given a sample.
    if loop.kind == "while" or "range(" in loop.text or OVER_BATCHES.search(loop.text) or _is_written_out(loop, facts):
        return set()
    return set(loop.targets)


def _is_attended(loop: int, facts: FunctionFacts) -> bool:
    """Whether each turn of a loop is timed by itself, or shown to a person who looks at a handful."""
    for call in facts.calls:
        if isinstance(call.func, str) and loop in facts.loops_around(call.context):
            if Effect.CLOCK in of_function(call.func) or call.func.rpartition(".")[2] == "display":
                return True
    return False


def _is_written_out(loop: LoopFacts, facts: FunctionFacts) -> bool:
    """Whether a loop of another function runs over a handful that is written out."""
    rows = loop.iterable
    while isinstance(rows, tuple) and rows[0] == "call" and rows[1] in _WRAPPERS and rows[2]:
        rows = rows[2][0]
    found = facts.binds.get(rows, ()) if isinstance(rows, str) else (rows,)
    return any(isinstance(item, tuple) and item[0] == "seq" and 0 < len(item[1]) < _FEW for item in found)


def loop_header(edge: Edge, ctx: FileFacts) -> str:
    """What the loop right around a call goes through, as it is written."""
    index = ctx.program.function(edge.caller).innermost_loop(edge.context)
    text = ctx.program.function(edge.caller).loops[index].text if index is not None else ""
    return re.sub(r"^.*?\bin\s+|:\s*$", "", text)


def _names_of(value: object) -> set[str]:
    """The names in a value of the summaries' notation."""
    if isinstance(value, str):
        return {value.partition(".")[0]}
    if not isinstance(value, tuple) or (value and value[0] in ("const", "lambda")):
        return set()
    parts = value[1:] if value and isinstance(value[0], str) else value
    return {name for part in parts for name in _names_of(part)}


def _names_behind(value: object, edge: Edge, ctx: FileFacts) -> set[str]:
    """The names in what a call passes, and those that the names it passes are set from."""
    names = _names_of(value)
    if isinstance(value, str) and "." not in value:
        for given in ctx.program.function(edge.caller).binds.get(value, ()):
            names |= _names_of(given)
    return names


def _is_busy(facts: FunctionFacts) -> bool:
    """Whether the caller trains, plays or measures."""
    called = {str(call.func).rpartition(".")[2] for call in facts.calls}
    return any(TIMES.search(name) or CHANGED_BY_RUN.search(name) for name in called)
