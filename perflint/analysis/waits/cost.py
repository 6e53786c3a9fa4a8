"""What each expression does to the device's queue, and what a wait costs that stands in it."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from perflint.analysis.cost import Exposure, impact_of_wait
from perflint.analysis.device_queue import transfer
from perflint.analysis.device_queue.functions import Entry
from perflint.analysis.device_queue.queue import DeviceQueue
from perflint.analysis.device_queue.transfer import Transfer
from perflint.analysis.feasibility.at_nodes import is_in_training
from perflint.analysis.feasibility.device_branches import rules_out_cuda
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.many_turns import runs_dozens_of_times
from perflint.analysis.gradients.model_calls import is_model_call
from perflint.analysis.phases.phase import Phase
from perflint.analysis.shortened import short_text
from perflint.analysis.transfers.data_copies import copied_at
from perflint.analysis.transfers.host_copies import MOVES, copy_at
from perflint.analysis.transfers.indices import index_copied_at
from perflint.analysis.values.implicit_copies import COPYING_NAMES
from perflint.analysis.values.kind import Place, Tag
from perflint.analysis.waits.graph_sizes import looked_up
from perflint.analysis.waits.masks import mask_in, selects_on_device
from perflint.analysis.waits.next_reads import is_read_next
from perflint.analysis.waits.numbers import device_number
from perflint.analysis.waits.reads import device_read, is_on_device
from perflint.analysis.waits.rows import whole_of_rows
from perflint.analysis.waits.small_functions import launches_of
from perflint.analysis.waits.texts import formatter_around, is_formatter, printed_in
from perflint.analysis.waits.truth_tests import certainty_asked, is_tested
from perflint.analysis.waits.value_uses import Use, ends_loop, use_of
from perflint.finding import Heat, Hop, Impact
from perflint.ir import guards
from perflint.ir.calls import callee_name, keyword
from perflint.ir.control_flow import Condition, ControlFlow
from perflint.torch_model import tensors
from perflint.torch_model.effects import Effect
from perflint.torch_model.modules import is_light

#: Methods of texts and containers: they launch nothing, whatever they are called on.
_PLAIN_METHODS = frozenset(name for kind in (str, list, dict, set) for name in dir(kind))
_BUILTINS = frozenset(dir(builtins))
_SYNC_NAMES = frozenset(name.rpartition(".")[2] for name in tensors.SYNC_FUNCTIONS)
#: Operations that keep the device busy for longer than it takes to launch them.
_HEAVY = frozenset(
    "matmul bmm mm addmm baddbmm einsum conv1d conv2d conv3d conv_transpose1d conv_transpose2d linear "
    "scaled_dot_product_attention multi_head_attention_forward".split()
)
_WORKING = (Effect.FORWARD, Effect.BACKWARD, Effect.STEPS, Effect.GENERATES)
#: So many launches in each iteration make its wait a wait for them.
_SEVERAL = 2
#: Methods that wait for what they are called on, unless it is known to be on the host.
_READERS = frozenset({"item", "tolist", "cpu"})
_WHOLE = frozenset({"tolist", "cpu", "numpy"})


def exposure_of(node: ast.AST, ctx: FileFacts) -> Exposure:
    """How the wait at `node` stands in its step."""
    queue, trains = _queues_around(node, ctx).all, in_training_step(node, ctx)
    # What does not train waits for its results in any case: little work in a few turns more is no cost of its own.
    least = _SEVERAL if trains or runs_dozens_of_times(node, ctx) else transfer.FULL
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
    return min(found, Impact.MEDIUM) if use_of(node, ctx) is Use.HOST else found


def first_of_block(node: ast.AST, ctx: FileFacts) -> ast.AST:
    """The wait that drained the queue which this one finds nearly empty: the first of all of them, or `node` itself."""
    queue, graph = _queues_around(node, ctx).all, ctx.control_flow(node)
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
        and ctx.once(_change, part).empties
        and ctx.heat(part) >= Heat.STEP
        and first_of_block(part, ctx) is first
    ]


def copied_next(node: ast.AST, ctx: FileFacts) -> list[ast.AST]:
    """The copies to the host one of which waits for what is queued at `node`, if `node` does not: on every path one
    comes in the same iteration before much is launched. Empty where that need not be, or where another function waits
    there, whose wait may stand behind this one.
    """
    if _queues_around(node, ctx).all.launched_until_next_wait(node) >= transfer.FULL:
        return []
    loops = [loop for loop in ctx.loops(node) if ctx.body_heat(loop) >= Heat.STEP]
    region = loops[0] if loops else ctx.control_flow(node).scope
    later = [part for part in waits_spared_by(node, region, ctx) if _place(part) > _place(node)]
    calls = [part for part in later if isinstance(part, ast.Call) and callee_name(part) in _WHOLE]
    reads = [device_read(call, ctx) for call in calls]
    return later if len(calls) == len(later) and any(read is not None and read.copies for read in reads) else []


def finds_little(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether another wait has drained the queue just before, on every path."""
    return not _queues_around(node, ctx).all.before(node).is_full


def finds_nothing(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether another wait has drained the queue, and nothing was launched since."""
    return _queues_around(node, ctx).all.before(node).launched == 0


def drained_by_callers(node: ast.AST, ctx: FileFacts) -> frozenset[Hop]:
    """The waits of those that call the function around a wait, where each of them has drained the queue before it does
    so, with little launched since: whatever is done about this wait, nobody waits there for anything else. None where
    one of them is the only one there is: calls in a row wait for each other.
    """
    state = _queues_around(node, ctx).all.before(node)
    places = frozenset(wait for wait in state.emptied_by if isinstance(wait, Hop))
    if state.is_full or places != state.emptied_by:
        return frozenset()
    return places - {place for place in places if (place.path, place.line) == (ctx.path, node.lineno)}  # type: ignore[attr-defined]


def wait_of_call(node: ast.AST, ctx: FileFacts) -> Hop | None:
    """Where a function waits that is called."""
    index = ctx.call_index(node) if isinstance(node, ast.Call) else None
    return None if index is None else ctx.program.queue_change(ctx.scope(node), index).wait


def surely_waits(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a wait is certain and stays: not `.cpu()` of what may be an array, nor a test of what may be a number; a
    copy to the device can be made without waiting.
    """
    if not isinstance(node, (ast.Call, ast.Subscript)) or ctx.once(_change_but_copies, node) is transfer.NOTHING:
        return False
    if isinstance(node, ast.Call) and callee_name(node) in _READERS and ctx.project_target(node.func) is None:
        return device_read(node, ctx) is not None
    return ctx.once(_change, node).empties


def emptied_by(node: ast.AST, ctx: FileFacts) -> Hop | None:
    """The wait that has drained the queue when a copy runs, with little launched since: before it, at the end of the
    iteration before, or in what led here. None where work is queued, or nothing is known. Other copies to the device do
    not count: whoever mends one mends them all.
    """
    state = _queues_around(node, ctx).but_copies.before(node)
    if state.is_full:
        return None
    places = [wait if isinstance(wait, Hop) else ctx.hop(wait, short_text(wait, ctx, 40)) for wait in state.emptied_by]
    return min(places, key=lambda place: (place.path, place.line, place.text), default=None)


def is_waited_for_next(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the host reads behind a copy before much is launched: then it waits there in any case."""
    return _queues_around(node, ctx).but_copies.launched_until_next_wait(node) < transfer.FULL


def is_company(node: ast.AST, earlier: ast.AST, ctx: FileFacts) -> bool:
    """Whether a wait finds the queue as an earlier one has left it."""
    state = _queues_around(node, ctx).all.before(node)
    return not state.is_full and earlier in state.emptied_by


def _place(node: ast.AST) -> tuple[int, int]:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]


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


def _launches_each_time(loop: ast.For | ast.AsyncFor | ast.While, ctx: FileFacts, least: int = _SEVERAL) -> bool:
    """Whether each iteration launches something for its wait to wait for, and does not only read what is there."""
    launched = 0
    for statement in loop.body:
        for node in ctx.walk(statement):
            launched += ctx.once(_change, node).total
            if launched >= least:
                return True
    return False


def _change_but_copies(node: ast.AST, ctx: FileFacts) -> Transfer:
    """What a node does to the queue if no copy to the device waits."""
    if isinstance(node, ast.Call) and _copies_to_device(node, ctx):
        return transfer.NOTHING
    if isinstance(node, ast.Subscript) and _copies_to_slot(node, ctx):
        return transfer.NOTHING
    return ctx.once(_change, node)


class _Queues(NamedTuple):
    """The queue of a function as it is, and as it would be if no copy to the device waited."""

    all: DeviceQueue
    but_copies: DeviceQueue


def _queues_around(node: ast.AST, ctx: FileFacts) -> _Queues:
    """The queue of the function around `node`, seen from the loop over steps around it, if there is one."""
    loops = [loop for loop in ctx.loops(node) if ctx.body_heat(loop) >= Heat.STEP > ctx.heat(loop)]
    if loops:
        return ctx.once(_queues_in_loop, loops[-1])
    return ctx.once(_queues_in_function, ctx.control_flow(node).scope)


def _queues_in_loop(loop: ast.For | ast.AsyncFor | ast.While, ctx: FileFacts) -> _Queues:
    return _queues(ctx.control_flow(loop), ctx, loop)


def _queues_in_function(scope: ast.AST, ctx: FileFacts) -> _Queues:
    body = scope.body  # type: ignore[attr-defined]
    first = body[0] if isinstance(body, list) else body
    # What steps an optimizer is the end of a step, as far as one sees.
    steps = ctx.program.effects(ctx.scope(first)).does(Effect.STEPS)
    entry = ctx.program.queue_at_start(ctx.scope(first))
    return _queues(ctx.control_flow(first), ctx, ends_step=steps, entry=entry)


def _queues(
    graph: ControlFlow,
    ctx: FileFacts,
    loop: ast.For | ast.AsyncFor | ast.While | None = None,
    *,
    ends_step: bool = False,
    entry: Entry | None = None,
) -> _Queues:
    changes = (_change, _change_but_copies)
    return _Queues(
        *(
            DeviceQueue(
                graph, partial(_known, change, ctx), loop, partial(_is_rare, ctx), ends_step=ends_step, entry=entry
            )
            for change in changes
        )
    )


def _known(change: Callable[[ast.AST, FileFacts], Transfer], ctx: FileFacts, node: ast.AST) -> Transfer:
    return ctx.once(change, node)


def _is_rare(ctx: FileFacts, condition: Condition) -> bool:
    test, truth = condition
    if rules_out_cuda(test, ctx, holds=truth):
        return True  # there is no queue then
    # An optimizer's step is taken every few iterations, or in each one: by default as a rule.
    return (guards.classify(test) if truth else guards.classify_negated(test)) not in (None, guards.ACCUMULATION)


def _change(node: ast.AST, ctx: FileFacts) -> Transfer:
    if isinstance(node, (ast.Slice, ast.Subscript, ast.Call)) and device_number(node, ctx) is not None:
        return transfer.waiting(None)
    if isinstance(node, ast.expr) and _waits(node, ctx):
        # What is read for a text waits with the text, so that all of it is one wait.
        return transfer.waiting(None) if formatter_around(node, ctx) is None else transfer.NOTHING
    if isinstance(node, ast.Call):
        return _of_call(node, ctx)
    if isinstance(node, (ast.BinOp, ast.Compare, ast.UnaryOp)):
        kind = ctx.kind(node)
        if not kind.is_tensor or kind.place is Place.HOST:
            return transfer.NOTHING
        is_product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
        return transfer.WORK if is_product else transfer.launching(1)
    if isinstance(node, ast.AugAssign) and ctx.kind(node.target).is_tensor:
        return transfer.launching(1)
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and ctx.kind(node.value).is_tensor:
        return transfer.NOTHING if ctx.kind(node.value).place is Place.HOST else transfer.launching(1)
    return transfer.NOTHING


def _waits(node: ast.expr, ctx: FileFacts) -> bool:
    if isinstance(node, (ast.Call, ast.Subscript)) and device_number(node, ctx) is not None:
        return True
    if isinstance(node, ast.Call):
        if device_read(node, ctx) is not None:
            return True
        if _copies_to_device(node, ctx):
            return True
        name = callee_name(node)
        if name in _READERS and isinstance(node.func, ast.Attribute) and _may_be_on_device(node.func.value, ctx):
            return True
        asked = _asked_by(node, ctx)
        if asked is not None and is_on_device(asked, ctx):
            return not (is_read_next(node, ctx) or _knows_repeats(node, ctx))
    if isinstance(node, ast.Subscript):
        if _copies_to_slot(node, ctx):
            return True
        return _selects(node, ctx) and not is_read_next(node, ctx)
    if isinstance(node, (ast.Call, ast.JoinedStr, ast.BinOp)) and is_formatter(node, ctx):
        return any(item.waits for item in printed_in(node, ctx))
    return _is_asked(node, ctx) and certainty_asked(node, ctx) is not None


def _asked_by(call: ast.Call, ctx: FileFacts) -> ast.expr | None:
    """The tensor whose values a call waits for: `mask` of `mask.nonzero()` and `torch.nonzero(mask)`."""
    if callee_name(call) in _SYNC_NAMES and (ctx.target(call.func) or "") in tensors.SYNC_FUNCTIONS:
        return call.args[0] if call.args else keyword(call, "input")
    if (read := looked_up(call, ctx)) is not None:
        return read
    is_method = callee_name(call) in tensors.SYNC_METHODS and isinstance(call.func, ast.Attribute)
    return call.func.value if is_method else None  # type: ignore[attr-defined]


def _knows_repeats(call: ast.Call, ctx: FileFacts) -> bool:
    """`rows.repeat_interleave(3)`: how many rows that gives is known without a look at the device."""
    if callee_name(call) != "repeat_interleave" or not call.args:
        return False
    return keyword(call, "output_size") is not None or not ctx.kind(call.args[0]).is_tensor


def _copies_to_slot(node: ast.Subscript, ctx: FileFacts) -> bool:
    """`shapes[level, 0] = height`, `boxes[:, [0, 2]]`: the number, or the index, is copied to the device."""
    if index_copied_at(node, ctx) is not None:
        return True
    written = ctx.tree.parent(node) if isinstance(node.ctx, ast.Store) else None
    return isinstance(written, ast.Assign) and copied_at(written, ctx) is not None


def _may_be_on_device(node: ast.expr, ctx: FileFacts) -> bool:
    kind = ctx.kind(node)
    return kind.place is not Place.HOST and (kind.holds_tensors or not kind.known)


def _selects(node: ast.Subscript, ctx: FileFacts) -> bool:
    """`x[mask]`, read or written with a tensor: how many entries that are, the device has to count."""
    if isinstance(mask_in(node, ctx), (ast.Constant, ast.Slice)) or not selects_on_device(node, ctx):
        return False
    outer = ctx.tree.parent(node)
    return not isinstance(node.ctx, ast.Store) or not isinstance(outer, ast.Assign) or is_on_device(outer.value, ctx)


def _is_asked(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether Python asks a value whether it is true."""
    outer = ctx.tree.parent(node)
    if isinstance(outer, (ast.If, ast.While, ast.Assert, ast.IfExp)):
        return outer.test is node
    if isinstance(outer, ast.UnaryOp):
        return isinstance(outer.op, ast.Not)
    if isinstance(outer, ast.BoolOp):
        return node is not outer.values[-1] or is_tested(outer, ctx)
    return isinstance(outer, ast.comprehension) and node in outer.ifs


def _copies_to_device(call: ast.Call, ctx: FileFacts) -> bool:
    """`x.to(device)` of what is in pageable memory, where nothing says that it is not to wait; or a constructor that
    copies numbers there.
    """
    if callee_name(call) in COPYING_NAMES:
        return copied_at(call, ctx) is not None
    if callee_name(call) not in MOVES or not isinstance(call.func, ast.Attribute):
        return False
    if any(item.arg == "non_blocking" for item in call.keywords):
        return False
    if copy_at(call, ctx) is not None:
        return True
    kind = ctx.kind(call.func.value)
    return kind.holds_tensors and kind.place is Place.HOST and ctx.kind(call).place.is_accelerator


def _of_call(call: ast.Call, ctx: FileFacts) -> Transfer:
    if is_light(ctx.kind(call.func).qualified or ""):
        return transfer.launching(_SEVERAL)
    index = ctx.call_index(call)
    change = transfer.NOTHING if index is None else ctx.program.queue_change(ctx.scope(call), index)
    kind = ctx.kind(call)
    if change.fresh is None and kind.is_tensor and kind.place is Place.HOST and not ctx.effects(call).does(*_WORKING):
        return transfer.NOTHING  # what gives a tensor of the host without a wait has worked on the host
    if change.fresh is not None or change.total >= transfer.FULL:
        return change
    name = callee_name(call)
    if isinstance(call.func, ast.Attribute) and name in _PLAIN_METHODS:
        return transfer.NOTHING
    if ctx.effects(call).does(*_WORKING) or ctx.kind(call.func).tag is Tag.MODULE or is_model_call(call, ctx):
        return transfer.WORK
    if ctx.project_target(call.func) is not None:
        if kind.tag not in (Tag.TENSOR, Tag.OUTPUT):
            return change
        count = launches_of(call, ctx)
        return transfer.WORK if count is None else transfer.launching(count)
    if kind.tag is Tag.SEQUENCE and isinstance(call.func, ast.Name) and call.func.id in _BUILTINS:
        return transfer.NOTHING  # `zip(losses, meters)` gives what is there
    if kind.is_tensor or kind.tag is Tag.SEQUENCE:
        if kind.place is Place.HOST or (name in tensors.VIEW_METHODS and isinstance(call.func, ast.Attribute)):
            return transfer.NOTHING
        return transfer.WORK if name in _HEAVY else transfer.launching(1)
    return transfer.NOTHING
