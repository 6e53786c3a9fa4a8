"""What evaluating each node does to the device's queue, calls of the project by the text of what they run.

Summaries know calls and reads by name (`device_queue.functions`); whether `rows[mask]` counts on the device, and
whether `a - b` is computed there, the values of the file with the function tell. They are asked of the function that
is called and no deeper: for what that one calls summaries speak, so no such answer leans on another one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

from perflint.analysis.device_queue import transfer
from perflint.analysis.device_queue.functions import Entry, in_order
from perflint.analysis.device_queue.queue import DeviceQueue, QueueState
from perflint.analysis.device_queue.transfer import FULL, Transfer
from perflint.analysis.effects.summary import Effect
from perflint.analysis.feasibility.device_branches import rules_out_cuda
from perflint.analysis.feasibility.first_process import rules_out_first
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import FUNCTION
from perflint.analysis.shortened import short_text
from perflint.analysis.values.kind import Tag
from perflint.analysis.waits.queue_changes import may_wait_itself, own_change, own_change_but_copies
from perflint.analysis.waits.reads import device_read
from perflint.finding import Heat, Hop
from perflint.ir import guards
from perflint.ir.calls import arguments_of, callee_name
from perflint.ir.control_flow import Condition, ControlFlow
from perflint.syntax.tree import FUNCTIONS

__all__ = [
    "change_but_copies",
    "change_of",
    "change_that_stays",
    "places_of",
    "queue_of",
    "step_loop_around",
    "surely_empties",
]

_Change: TypeAlias = Callable[[ast.AST, FileFacts], Transfer]
_Told = TypeVar("_Told")
_Loop: TypeAlias = "ast.For | ast.AsyncFor | ast.While"
#: What computes where its operands are.
_OPERATIONS = (ast.BinOp, ast.Compare, ast.UnaryOp, ast.AugAssign)


class _Inside(NamedTuple):
    """What a run of a function does, by its text; whether one of the waits that drain the queue there may be mended."""

    change: Transfer
    can_be_mended: bool = False


def queue_of(
    graph: ControlFlow,
    change: _Change,
    ctx: FileFacts,
    *,
    loop: _Loop | None = None,
    entry: Callable[[], Entry] | None = None,
) -> DeviceQueue:
    """The queue in a function, seen from a loop over steps or from where the function begins."""
    # What steps an optimizer is the end of a step, as far as one sees.
    body = graph.scope.body
    first = body[0] if isinstance(body, list) else body
    steps = loop is None and ctx.program.effects(ctx.scope(first)).does(Effect.STEPS)
    known, may_wait = partial(_known, change, ctx), partial(_known, _may_wait, ctx)
    return DeviceQueue(graph, known, loop, partial(_is_rare, ctx), may_wait=may_wait, ends_step=steps, entry=entry)


def _known(change: Callable[[ast.AST, FileFacts], _Told], ctx: FileFacts, node: ast.AST) -> _Told:
    return ctx.once(change, node)


def _may_wait(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a node may empty the queue. Of most it is told without what they launch."""
    if may_wait_itself(node, ctx):
        return True
    ref = ctx.project_target(node.func) if isinstance(node, ast.Call) else None
    return ref is not None and ref.kind == FUNCTION


def _is_rare(ctx: FileFacts, condition: Condition) -> bool:
    test, truth = condition
    if rules_out_cuda(test, ctx, holds=truth):
        return True  # there is no queue then
    if rules_out_first(test, holds=truth):
        return True  # the first process waits in each step, and the others wait for it
    # An optimizer's step is taken every few iterations, or in each one: by default as a rule.
    return (guards.classify(test) if truth else guards.classify_negated(test)) not in (None, guards.ACCUMULATION)


def step_loop_around(node: ast.AST, ctx: FileFacts) -> _Loop | None:
    """The loop of the function around a node whose iterations are steps; None where the function is part of a step."""
    loops = [loop for loop in ctx.loops(node) if ctx.body_heat(loop) >= Heat.STEP > ctx.heat(loop)]
    return loops[-1] if loops else None


def change_of(node: ast.AST, ctx: FileFacts) -> Transfer:
    """What evaluating a node does to the queue, its operands left out."""
    found = ctx.once(own_change, node)
    return _inside(node, found, ctx) if isinstance(node, ast.Call) else found


def change_but_copies(node: ast.AST, ctx: FileFacts) -> Transfer:
    """The same if no copy to the device waited."""
    found = ctx.once(own_change_but_copies, node)
    return _inside(node, found, ctx) if isinstance(node, ast.Call) else found


def change_that_stays(node: ast.AST, ctx: FileFacts) -> Transfer:
    """The same if only those waited whose results are wanted on the host, or who measure: nobody mends them."""
    found = ctx.once(change_but_copies, node)
    if found.fresh is None or (isinstance(node, ast.Call) and (_stays(node, ctx) or _stays_inside(node, ctx))):
        return found
    return transfer.launching(found.total)


def surely_empties(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a node certainly empties the queue: a function that it calls by its names, or by a wait that stays."""
    if not ctx.once(change_of, node).empties:
        return False
    return not isinstance(node, ast.Call) or ctx.once(own_change, node).empties or _stays_inside(node, ctx)


def _inside(call: ast.Call, summarized: Transfer, ctx: FileFacts) -> Transfer:
    """What a call does by the text of the project's function that it runs; `summarized` where that tells no more."""
    if summarized.total == 0 and summarized.fresh is None:
        return summarized
    found = _told_inside(call, ctx)
    if found is None or (found.change is transfer.WORK and summarized.fresh is not None):
        return summarized  # where it waits, and what it leaves comes behind
    return found.change


def _stays_inside(call: ast.Call, ctx: FileFacts) -> bool:
    found = _told_inside(call, ctx)
    return found is not None and not found.can_be_mended


def _told_inside(call: ast.Call, ctx: FileFacts) -> _Inside | None:
    ref = ctx.project_target(call.func)
    other = ctx.at(ref.path) if ref is not None and ref.kind == FUNCTION else None
    function = other.inference.classes.function_node(ref.name) if ref is not None and other is not None else None
    if ref is None or other is None or not isinstance(function, FUNCTIONS):
        return None
    is_on_host = "." not in ref.name and _is_given_arrays(call, ctx)
    return other.once(_of_arrays if is_on_host else _of_tensors, function)


def _is_given_arrays(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call gives arrays of the host and no tensors: then what nothing is known of is there as well."""
    kinds = [ctx.kind(item) for item in arguments_of(call)]
    return any(kind.tag is Tag.ARRAY for kind in kinds) and not any(kind.holds_tensors for kind in kinds)


def _of_arrays(function: ast.AST, ctx: FileFacts) -> _Inside | None:
    return _of(function, _but_of_arrays, ctx)


def _of_tensors(function: ast.AST, ctx: FileFacts) -> _Inside | None:
    return _of(function, _cautious, ctx)


def _of(function: ast.AST, change: _Change, ctx: FileFacts) -> _Inside | None:
    """None where a run may leave much in the queue, and nobody knows how much."""
    graph = ctx.control_flow(function.body[0])  # type: ignore[attr-defined]
    for launched in (FULL, 0):
        behind = queue_of(graph, change, ctx, entry=partial(Entry, launched)).at_exit()
        if behind is None:
            return None
        if not behind.is_full and not behind.emptied_by:
            return _Inside(transfer.launching(behind.launched))
        if not behind.is_full:
            through = behind.launched if launched == 0 else None
            found = Transfer(through, behind.launched, _launched_in(function, change, ctx), _first(behind, ctx))
            return _Inside(found, _can_be_mended(behind, ctx))
    is_work = _launched_in(function, own_change_but_copies, ctx) >= FULL
    return _Inside(transfer.WORK, can_be_mended=True) if is_work else None


def _launched_in(function: ast.AST, change: _Change, ctx: FileFacts) -> int:
    """How much a run of a function launches at most."""
    launched = 0
    for statement in function.body:  # type: ignore[attr-defined]
        for node in ctx.walk(statement):
            total = ctx.once(change, node).total
            launched += FULL if total and ctx.loops(node) else total
            if launched >= FULL:
                return FULL
    return launched


def _but_of_arrays(node: ast.AST, ctx: FileFacts) -> Transfer:
    found = ctx.once(own_change, node)
    is_tensor = isinstance(node, ast.expr) and ctx.kind(node).holds_tensors
    return found if is_tensor or found.fresh is not None or found.total >= FULL else transfer.NOTHING


def _cautious(node: ast.AST, ctx: FileFacts) -> Transfer:
    """What nothing is known of may be a tensor: what is computed with it launches something. A collective keeps the
    device waiting for those of the other processes.
    """
    if isinstance(node, ast.Call) and (ctx.target(node.func) or "").startswith("torch.distributed.all_"):
        return transfer.WORK
    found = ctx.once(own_change_but_copies, node)
    if found is not transfer.NOTHING or not isinstance(node, _OPERATIONS):
        return found
    value = node.target if isinstance(node, ast.AugAssign) else node
    if ctx.kind(value).known:
        return transfer.NOTHING
    is_product = isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.MatMult)
    return transfer.WORK if is_product else transfer.launching(1)


def _can_be_mended(state: QueueState, ctx: FileFacts) -> bool:
    """Whether one of the waits that have drained the queue may be one that need not be: without it, what comes behind
    it waits. Results that are copied to the host are wanted there, and what is measured has to have ended.
    """
    return not all(isinstance(wait, ast.Call) and _stays(wait, ctx) for wait in state.emptied_by)


def _stays(wait: ast.Call, ctx: FileFacts) -> bool:
    if callee_name(wait) == "synchronize":
        return True
    read = device_read(wait, ctx)
    return read is not None and read.copies


def _first(state: QueueState, ctx: FileFacts) -> Hop | None:
    return next(iter(places_of(state, ctx)), None)


def places_of(state: QueueState, ctx: FileFacts) -> list[Hop]:
    """The waits that have drained a queue, in order."""
    places = [wait if isinstance(wait, Hop) else ctx.hop(wait, short_text(wait, ctx, 40)) for wait in state.emptied_by]
    return sorted(places, key=in_order)
