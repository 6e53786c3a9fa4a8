"""What each expression does to the device's queue, and what a wait costs that stands in it."""

from __future__ import annotations

import ast

from perflint.api import (
    Change,
    Condition,
    Context,
    DeviceQueue,
    Effect,
    Exposure,
    Heat,
    Impact,
    Phase,
    Place,
    Tag,
    callee_name,
    guards,
    impact_of_wait,
    tensors,
)

from .asking import certainty_asked, is_tested
from .bounds import device_number
from .gradients import is_model_call
from .masks import mask_in, selects_on_device
from .printing import formatter_around, is_formatter, printed_in
from .queued import emptied_by
from .read_next import is_read_next
from .waits import device_read, is_on_device

#: Methods of texts and containers: they launch nothing, whatever they are called on.
_PLAIN_METHODS = frozenset(name for kind in (str, list, dict, set) for name in dir(kind))
#: Operations that keep the device busy for longer than it takes to launch them.
_HEAVY = frozenset(
    "matmul bmm mm addmm baddbmm einsum conv1d conv2d conv3d conv_transpose1d conv_transpose2d linear "
    "scaled_dot_product_attention multi_head_attention_forward".split()
)
_WORKING = (Effect.FORWARD, Effect.BACKWARD, Effect.STEPS, Effect.GENERATES)
#: Results of a call that was the last thing to wait: the host has the number.
_NUMBERS = (Tag.NUMBER, Tag.STRING, Tag.ARRAY)


def exposure_of(node: ast.AST, ctx: Context) -> Exposure:
    """How the wait at `node` stands in its step."""
    queue = _queue_around(node, ctx)
    return Exposure(
        queue.before(node).launched,
        queue.launched_after(node),
        is_repeated=_is_repeated(node, ctx),
        trains=ctx.phase(node).phase is Phase.TRAIN,
    )


def impact_at(node: ast.AST, ctx: Context) -> Impact:
    """What the wait at `node` costs."""
    return impact_of_wait(exposure_of(node, ctx))


def first_of_block(node: ast.AST, ctx: Context) -> ast.AST:
    """The wait that drained the queue which this one finds nearly empty: the first of all of them, or `node` itself."""
    queue = _queue_around(node, ctx)
    first, seen = node, {node}
    while True:
        state = queue.before(first)
        earlier = min(state.emptied_by, key=_place, default=None)
        if state.is_full or earlier is None or earlier in seen or _place(earlier) >= _place(first):
            return first
        seen.add(earlier)
        first = earlier


def finds_little(node: ast.AST, ctx: Context) -> bool:
    """Whether another wait has drained the queue just before, on every path."""
    return not _queue_around(node, ctx).before(node).is_full


def finds_nothing(node: ast.AST, ctx: Context) -> bool:
    """Whether another wait has drained the queue, and nothing was launched since."""
    return _queue_around(node, ctx).before(node).launched == 0


def _place(node: ast.AST) -> tuple[int, int]:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]


def _is_repeated(node: ast.AST, ctx: Context) -> bool:
    if ctx.heat(node) > Heat.STEP:
        return True
    loops = [loop for loop in ctx.loops(node) if ctx.body_heat(loop) >= Heat.STEP]
    if any(ctx.heat(loop) >= Heat.STEP for loop in loops):
        return True
    return not loops and ctx.program.runs_several_times(ctx.scope(node))


def _queue_around(node: ast.AST, ctx: Context) -> DeviceQueue:
    """The queue of the function around `node`, seen from the loop over steps around it, if there is one."""
    loops = [loop for loop in ctx.loops(node) if ctx.body_heat(loop) >= Heat.STEP > ctx.heat(loop)]
    if loops:
        return ctx.once(_queue_in_loop, loops[-1])
    return ctx.once(_queue_in_function, ctx.control_flow(node).scope)


def _queue_in_loop(loop: ast.For | ast.AsyncFor | ast.While, ctx: Context) -> DeviceQueue:
    return DeviceQueue(ctx.control_flow(loop), lambda node: ctx.once(_change, node), loop, _is_rare)


def _queue_in_function(scope: ast.AST, ctx: Context) -> DeviceQueue:
    body = scope.body  # type: ignore[attr-defined]
    first = body[0] if isinstance(body, list) else body
    graph = ctx.control_flow(first)
    # What steps an optimizer is the end of a step, as far as one sees.
    steps = ctx.program.effects(ctx.scope(first)).does(Effect.STEPS)
    empty = isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) and emptied_by(first, ctx) is not None
    return DeviceQueue(graph, lambda node: ctx.once(_change, node), None, _is_rare, ends_step=steps, starts_empty=empty)


def _is_rare(condition: Condition) -> bool:
    test, truth = condition
    return (guards.classify(test) if truth else guards.classify_negated(test)) is not None


def _change(node: ast.AST, ctx: Context) -> Change:
    if isinstance(node, (ast.Slice, ast.Subscript, ast.Call)) and device_number(node, ctx) is not None:
        return Change.WAITS
    if isinstance(node, ast.expr) and _waits(node, ctx):
        # What is read for a text waits with the text, so that all of it is one wait.
        return Change.WAITS if formatter_around(node, ctx) is None else Change.NOTHING
    if isinstance(node, ast.Call):
        return _of_call(node, ctx)
    if isinstance(node, (ast.BinOp, ast.Compare, ast.UnaryOp)):
        kind = ctx.kind(node)
        if not kind.is_tensor or kind.place is Place.HOST:
            return Change.NOTHING
        return Change.WORKS if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult) else Change.LAUNCHES
    if isinstance(node, ast.AugAssign) and ctx.kind(node.target).is_tensor:
        return Change.LAUNCHES
    return Change.NOTHING


def _waits(node: ast.expr, ctx: Context) -> bool:
    if isinstance(node, (ast.Call, ast.Subscript)) and device_number(node, ctx) is not None:
        return True
    if isinstance(node, ast.Call):
        if device_read(node, ctx) is not None:
            return True
        if _copies_to_device(node, ctx):
            return True
        name = callee_name(node)
        if name in tensors.SYNC_METHODS and isinstance(node.func, ast.Attribute) and is_on_device(node.func.value, ctx):
            return not is_read_next(node, ctx)
    if isinstance(node, ast.Subscript):
        return _selects(node, ctx) and not is_read_next(node, ctx)
    if isinstance(node, (ast.Call, ast.JoinedStr, ast.BinOp)) and is_formatter(node, ctx):
        return any(item.waits for item in printed_in(node, ctx))
    return _is_asked(node, ctx) and certainty_asked(node, ctx) is not None


def _selects(node: ast.Subscript, ctx: Context) -> bool:
    """`x[mask]`, read or written with a tensor: how many entries that are, the device has to count."""
    if isinstance(mask_in(node, ctx), (ast.Constant, ast.Slice)) or not selects_on_device(node, ctx):
        return False
    outer = ctx.tree.parent(node)
    return not isinstance(node.ctx, ast.Store) or not isinstance(outer, ast.Assign) or is_on_device(outer.value, ctx)


def _is_asked(node: ast.expr, ctx: Context) -> bool:
    """Whether Python asks a value whether it is true."""
    outer = ctx.tree.parent(node)
    if isinstance(outer, (ast.If, ast.While, ast.Assert, ast.IfExp)):
        return outer.test is node
    if isinstance(outer, ast.UnaryOp):
        return isinstance(outer.op, ast.Not)
    if isinstance(outer, ast.BoolOp):
        return node is not outer.values[-1] or is_tested(outer, ctx)
    return isinstance(outer, ast.comprehension) and node in outer.ifs


def _copies_to_device(call: ast.Call, ctx: Context) -> bool:
    """`x.to(device)` of what is in pageable memory, where nothing says that it is not to wait; or a constructor that
    copies numbers there.
    """
    if ctx.kind(call).place.is_accelerator and ctx.target(call.func) in tensors.COPYING_CONSTRUCTORS:
        return not (call.args and ctx.kind(call.args[0]).is_tensor)
    if callee_name(call) not in ("to", "cuda") or not isinstance(call.func, ast.Attribute):
        return False
    if any(item.arg == "non_blocking" for item in call.keywords):
        return False
    kind = ctx.kind(call.func.value)
    return kind.holds_tensors and kind.place is Place.HOST and ctx.kind(call).place.is_accelerator


def _of_call(call: ast.Call, ctx: Context) -> Change:
    name = callee_name(call)
    if isinstance(call.func, ast.Attribute) and name in _PLAIN_METHODS:
        return Change.NOTHING
    effects = ctx.effects(call)
    if effects.surely(Effect.WAITS):
        return Change.WAITS
    if effects.does(*_WORKING) or ctx.kind(call.func).tag is Tag.MODULE or is_model_call(call, ctx):
        return Change.WAITS if effects.does(Effect.READS) and ctx.kind(call).tag in _NUMBERS else Change.WORKS
    if ctx.project_target(call.func) is not None:
        return _of_project(call, ctx)
    kind = ctx.kind(call)
    if kind.is_tensor or kind.tag is Tag.SEQUENCE:
        if kind.place is Place.HOST or (name in tensors.VIEW_METHODS and isinstance(call.func, ast.Attribute)):
            return Change.NOTHING
        return Change.WORKS if name in _HEAVY else Change.LAUNCHES
    return Change.NOTHING


def _of_project(call: ast.Call, ctx: Context) -> Change:
    """What a function of the project does that runs no module: some kernels, and a read at the end where it gives a
    number.
    """
    effects, kind = ctx.effects(call), ctx.kind(call)
    if effects.does(Effect.READS) and kind.tag in _NUMBERS:
        return Change.WAITS
    if effects.does(Effect.LAUNCHES, Effect.READS, Effect.WAITS):
        return Change.WORKS
    if kind.tag in (Tag.TENSOR, Tag.OUTPUT):
        return Change.WORKS
    return Change.NOTHING
