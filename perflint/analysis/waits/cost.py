"""What a wait costs where it stands in the device's queue."""

from __future__ import annotations

import ast

from perflint.analysis.cost import Exposure, impact_of_wait
from perflint.analysis.device_queue import transfer
from perflint.analysis.feasibility.at_nodes import is_in_training
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.many_turns import runs_dozens_of_times
from perflint.analysis.phases.phase import Phase
from perflint.analysis.waits.called_functions import (
    change_but_copies,
    change_of,
    places_of,
    step_loop_around,
    surely_empties,
)
from perflint.analysis.waits.last_turn import only_last_counts
from perflint.analysis.waits.queue_changes import READERS, SEVERAL
from perflint.analysis.waits.queues_around import queues_around
from perflint.analysis.waits.reads import device_read
from perflint.analysis.waits.rows import whole_of_rows
from perflint.analysis.waits.value_uses import Use, ends_loop, use_of
from perflint.finding import Heat, Hop, Impact
from perflint.ir.calls import callee_name

_WHOLE = frozenset({"tolist", "cpu", "numpy"})


def exposure_of(node: ast.AST, ctx: FileFacts) -> Exposure:
    """How the wait at `node` stands in its step."""
    queue, trains = queues_around(node, ctx).all, in_training_step(node, ctx)
    # What does not train waits for its results in any case: little work in a few turns more is no cost of its own.
    least = SEVERAL if trains or runs_dozens_of_times(node, ctx) else transfer.FULL
    return Exposure(
        queue.before(node).launched, queue.launched_after(node), _is_repeated(node, ctx, least), trains=trains
    )


def in_training_step(node: ast.AST, ctx: FileFacts) -> bool:
    return ctx.phase(node).phase is Phase.TRAIN and is_in_training(node, ctx)


def impact_at(node: ast.AST, ctx: FileFacts) -> Impact:
    """What the wait at `node` costs."""
    return impact_of_wait(exposure_of(node, ctx))


def impact_of_decision(node: ast.expr, ctx: FileFacts) -> Impact:
    """What the wait at `node` costs that can be avoided: a solver, a line search and a training that may stop early
    have to know whether to go on.
    """
    read = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    if read is not None and whole_of_rows(read, ctx) is not None:
        return max(impact_at(node, ctx), Impact.MEDIUM)  # a wait for each row
    if ends_loop(node, ctx) and ctx.phase(node).phase is Phase.TRAIN:
        return Impact.LOW
    found = impact_at(node, ctx)
    # What a library of the host computes with has to come there: the wait can be put off, and not spared.
    is_needed = use_of(node, ctx) is Use.HOST and only_last_counts(node, ctx) is None
    return min(found, Impact.MEDIUM) if is_needed else found


def first_of_block(node: ast.AST, ctx: FileFacts) -> ast.AST:
    """The wait that drained the queue which this one finds nearly empty: the first of all of them, or `node` itself."""
    queue, graph = queues_around(node, ctx).all, ctx.control_flow(node)
    first, seen = node, {node}
    while True:
        state = queue.before(first)
        earlier = min((wait for wait in state.emptied_by if isinstance(wait, ast.AST)), key=_place, default=None)
        if state.is_full or earlier is None or earlier in seen:
            return first
        # The value that is written stands behind the target, a wait of the iteration before behind the first one.
        if _place(earlier) >= _place(first) and not graph.dominates(earlier, first):
            return first
        seen.add(earlier)
        first = earlier


def waits_spared_by(first: ast.AST, region: ast.AST, ctx: FileFacts) -> list[ast.AST]:
    """The waits of every step in a region that find the queue nearly empty because `first` has drained it: without it,
    one of them would wait instead.
    """
    return [
        part
        for part in ctx.walk(region)
        if part is not first
        and ctx.once(change_of, part).empties
        and ctx.heat(part) >= Heat.STEP
        and first_of_block(part, ctx) is first
    ]


def copied_next(node: ast.AST, ctx: FileFacts) -> list[ast.AST]:
    """The copies to the host one of which waits for what is queued at `node`, if `node` does not: on every path one
    comes in the same iteration before much is launched. Empty where that need not be, or where another function waits
    there, whose wait may stand behind this one.
    """
    if queues_around(node, ctx).all.launched_until_next_wait(node) >= transfer.FULL:
        return []
    loops = [loop for loop in ctx.loops(node) if ctx.body_heat(loop) >= Heat.STEP]
    region = loops[0] if loops else ctx.control_flow(node).scope
    later = [part for part in waits_spared_by(node, region, ctx) if _place(part) > _place(node)]
    calls = [part for part in later if isinstance(part, ast.Call) and callee_name(part) in _WHOLE]
    reads = [device_read(call, ctx) for call in calls]
    return later if len(calls) == len(later) and any(read is not None and read.copies for read in reads) else []


def finds_little(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether another wait has drained the queue just before, on every path."""
    return not queues_around(node, ctx).all.before(node).is_full


def finds_nothing(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether another wait has drained the queue, and nothing was launched since."""
    return queues_around(node, ctx).all.before(node).launched == 0


def drained_by_callers(node: ast.AST, ctx: FileFacts) -> frozenset[Hop]:
    """The waits of those that call the function around a wait, where each of them has drained the queue before it does
    so, with little launched since: whatever is done about this wait, nobody waits there for anything else. None where
    one of them is the only one there is: calls in a row wait for each other.
    """
    state = queues_around(node, ctx).but_copies.before(node)
    places = frozenset(wait for wait in state.emptied_by if isinstance(wait, Hop))
    if state.is_full or places != state.emptied_by:
        return frozenset()
    return places - {place for place in places if (place.path, place.line) == (ctx.path, node.lineno)}  # type: ignore[attr-defined]


def wait_of_call(node: ast.AST, ctx: FileFacts) -> Hop | None:
    """Where a function waits that is called."""
    return ctx.once(change_of, node).wait if isinstance(node, ast.Call) else None


def surely_waits(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a wait is certain and stays: not `.cpu()` of what may be an array, nor a test of what may be a number; a
    copy to the device can be made without waiting.
    """
    if not isinstance(node, (ast.Call, ast.Subscript)) or ctx.once(change_but_copies, node) is transfer.NOTHING:
        return False
    if isinstance(node, ast.Call) and callee_name(node) in READERS and ctx.project_target(node.func) is None:
        return device_read(node, ctx) is not None
    return surely_empties(node, ctx)


def emptied_by(node: ast.AST, ctx: FileFacts) -> Hop | None:
    """The wait that has drained the queue when a copy runs, with little launched since: before it, at the end of the
    iteration before, or in what led here. None where work is queued, or nothing is known. Other copies to the device do
    not count: whoever mends one mends them all.
    """
    state = queues_around(node, ctx).but_copies.before(node)
    if state.is_full:
        return None
    return next(iter(places_of(state, ctx)), None)


def waits_for_little(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a copy of a few numbers waits for next to nothing: a wait or another copy has drained the queue. A copy
    that a step makes several times costs something all the same, where only other copies have.
    """
    return emptied_by(node, ctx) is not None or (finds_little(node, ctx) and not is_repeated(node, ctx))


def waited_before(wait: Hop, node: ast.expr, ctx: FileFacts) -> bool:
    """Whether a wait of the same function comes before a copy, in the same step."""
    around = ctx.tree.function_of(node)
    begins = 0 if around is None else around.lineno
    return wait.path == ctx.path and begins < wait.line <= node.lineno


def waits_later(wait: Hop, node: ast.expr | ast.stmt, ctx: FileFacts) -> bool:
    """Whether a wait ends the iteration before: a read that can be put off, and then the copy waits in its place."""
    return wait.path == ctx.path and wait.line > node.lineno


def is_waited_for_next(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the host reads behind a copy before much is launched: then it waits there in any case."""
    return queues_around(node, ctx).but_copies.launched_until_next_wait(node) < transfer.FULL


def begins_drained(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether each iteration of the steps around `node` begins with nothing queued: the one before has waited."""
    loop = step_loop_around(node, ctx)
    if loop is None:
        return False
    first = loop.test if isinstance(loop, ast.While) else loop.target
    return not queues_around(node, ctx).but_copies.before(first).is_full


def is_waited_for_anyway(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the host waits behind a copy for what stays, before much is launched: without the copy's own wait it
    waits there.
    """
    return queues_around(node, ctx).staying.launched_until_next_wait(node) < transfer.FULL


def impact_of_copy(node: ast.AST, ctx: FileFacts) -> Impact:
    """What the wait of a copy to the device costs."""
    return Impact.LOW if is_waited_for_anyway(node, ctx) else impact_at(node, ctx)


def is_company(node: ast.AST, earlier: ast.AST, ctx: FileFacts) -> bool:
    """Whether a wait finds the queue as an earlier one has left it."""
    state = queues_around(node, ctx).all.before(node)
    return not state.is_full and earlier in state.emptied_by


def _place(node: ast.AST) -> tuple[int, int]:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]


def is_repeated(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a step comes to `node` several times: in each layer, for each sample, in an inner loop that launches."""
    return _is_repeated(node, ctx, SEVERAL)


def _is_repeated(node: ast.AST, ctx: FileFacts, least: int) -> bool:
    """Whether a step comes to a wait several times, each time with as many launches to wait for."""
    if ctx.heat(node) > Heat.MICROBATCH:
        return True  # a micro-batch has a forward and a backward of its own, as a step has
    loops = [loop for loop in ctx.loops(node) if ctx.body_heat(loop) >= Heat.STEP]
    if any(ctx.heat(loop) >= Heat.STEP and _launches_each_time(loop, ctx, least) for loop in loops):
        return True
    return not loops and ctx.program.runs_several_times(ctx.scope(node))


def works_between(first: ast.AST, node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a loop that the first of two waits is not in repeats the other one, and launches work in each turn."""
    outer = ctx.loops(first)
    return any(_launches_each_time(loop, ctx) for loop in ctx.loops(node) if loop not in outer)


def _launches_each_time(loop: ast.For | ast.AsyncFor | ast.While, ctx: FileFacts, least: int = SEVERAL) -> bool:
    """Whether each iteration launches something for its wait to wait for, and does not only read what is there."""
    launched = 0
    for statement in loop.body:
        for node in ctx.walk(statement):
            launched += ctx.once(change_of, node).total
            if launched >= least:
                return True
    return False
