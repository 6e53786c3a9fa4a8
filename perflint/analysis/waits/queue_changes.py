"""What evaluating each node of a function does to the device's queue, the calls in it told by summaries."""

from __future__ import annotations

import ast
import builtins

from perflint.analysis.device_queue import transfer
from perflint.analysis.device_queue.transfer import Transfer
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.model_calls import is_model_call
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
from perflint.analysis.waits.small_functions import launches_of
from perflint.analysis.waits.texts import formatter_around, is_formatter, printed_in
from perflint.analysis.waits.truth_tests import certainty_asked, is_tested
from perflint.ir.calls import callee_name, keyword
from perflint.torch_model import tensors
from perflint.torch_model.effects import Effect
from perflint.torch_model.modules import is_light

__all__ = ["READERS", "SEVERAL", "may_wait_itself", "own_change", "own_change_but_copies"]

#: Methods of texts and containers: they launch nothing, whatever they are called on.
_PLAIN_METHODS = frozenset(name for kind in (str, list, dict, set) for name in dir(kind))
_BUILTINS = frozenset(dir(builtins))
_SYNC_NAMES = frozenset(name.rpartition(".")[2] for name in tensors.SYNC_FUNCTIONS)
_COUNTS = _SYNC_NAMES | frozenset(tensors.SYNC_METHODS)
#: Operations that keep the device busy for longer than it takes to launch them.
_HEAVY = frozenset(
    "matmul bmm mm addmm baddbmm einsum conv1d conv2d conv3d conv_transpose1d conv_transpose2d linear "
    "scaled_dot_product_attention multi_head_attention_forward".split()
)
_WORKING = (Effect.FORWARD, Effect.BACKWARD, Effect.STEPS, Effect.GENERATES)
#: So many launches in each iteration make its wait a wait for them.
SEVERAL = 2
#: Methods that wait for what they are called on, unless it is known to be on the host.
READERS = frozenset({"item", "tolist", "cpu"})


def own_change_but_copies(node: ast.AST, ctx: FileFacts) -> Transfer:
    """The same if no copy to the device waited."""
    if isinstance(node, ast.Call) and _copies_to_device(node, ctx):
        return transfer.NOTHING
    if isinstance(node, ast.Subscript) and _copies_to_slot(node, ctx):
        return transfer.NOTHING
    return ctx.once(own_change, node)


def own_change(node: ast.AST, ctx: FileFacts) -> Transfer:
    """What evaluating a node does, its operands left out."""
    if isinstance(node, (ast.Slice, ast.Subscript, ast.Call)) and device_number(node, ctx) is not None:
        return transfer.waiting(None)
    if isinstance(node, ast.expr) and ctx.once(_waits, node):
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


def may_wait_itself(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether `own_change` may be one that empties the queue, for less."""
    if isinstance(node, ast.Slice) and device_number(node, ctx) is not None:
        return True
    if isinstance(node, ast.expr) and ctx.once(_waits, node):
        return True
    index = ctx.call_index(node) if isinstance(node, ast.Call) else None
    return index is not None and ctx.program.queue_change(ctx.scope(node), index).fresh is not None


def _waits(node: ast.expr, ctx: FileFacts) -> bool:
    if isinstance(node, (ast.Call, ast.Subscript)) and device_number(node, ctx) is not None:
        return True
    if isinstance(node, ast.Call):
        if device_read(node, ctx) is not None:
            return True
        if _copies_to_device(node, ctx):
            return True
        name = callee_name(node)
        if name in READERS and isinstance(node.func, ast.Attribute) and _may_be_on_device(node.func.value, ctx):
            return True
        asked = _asked_by(node, ctx)
        if asked is not None and is_on_device(asked, ctx):
            return not (is_read_next(node, ctx) or _knows_repeats(node, ctx))
    if isinstance(node, ast.Subscript):
        if _copies_to_slot(node, ctx) or device_read(node, ctx) is not None:
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
    if copy_at(call, ctx) is not None:
        return True
    if any(item.arg == "non_blocking" for item in call.keywords):
        return False
    kind = ctx.kind(call.func.value)
    return kind.holds_tensors and kind.place is Place.HOST and ctx.kind(call).place.is_accelerator


def _of_call(call: ast.Call, ctx: FileFacts) -> Transfer:
    if is_light(ctx.kind(call.func).qualified or ""):
        return transfer.launching(SEVERAL)
    if callee_name(call) in _COUNTS and _asked_by(call, ctx) is not None and is_read_next(call, ctx, by_call=True):
        return transfer.launching(SEVERAL)  # it is the read behind that waits, which a rule may tell
    index = ctx.call_index(call)
    change = transfer.NOTHING if index is None else ctx.program.queue_change(ctx.scope(call), index)
    if change.fresh is not None:
        return change
    name, works = callee_name(call), ctx.effects(call).does(*_WORKING)
    # What a call gives takes long to tell: that comes behind what it does.
    if not works and (kind := ctx.kind(call)).is_tensor and kind.place is Place.HOST:
        return transfer.NOTHING  # what gives a tensor of the host without a wait has worked on the host
    if change.total >= transfer.FULL:
        return change
    if isinstance(call.func, ast.Attribute) and name in _PLAIN_METHODS:
        return transfer.NOTHING
    if works or ctx.kind(call.func).tag is Tag.MODULE or is_model_call(call, ctx):
        return transfer.WORK
    kind = ctx.kind(call)
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
