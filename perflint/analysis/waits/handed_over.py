"""What a wait for the device is there for where it stands: what is read next of events, or handed to others."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import FUNCTION, Scope
from perflint.analysis.values.kind import Kind, Tag
from perflint.ir.callees import last_name as last_of
from perflint.ir.calls import arguments_of, callee_name
from perflint.syntax.walk import walk
from perflint.torch_model import distributed

#: What hands its arguments, or the memory they are in, to another process or thread.
_HANDING = frozenset(
    "put put_nowait send send_bytes share_memory_ remote rpc_sync rpc_async submit apply_async".split()
)
_OBJECTS = frozenset(
    "send_object_list recv_object_list broadcast_object_list all_gather_object gather_object "
    "scatter_object_list".split()
)
_OTHER_PROCESSES = ("torch.distributed.rpc.", "torch.multiprocessing.", "multiprocessing.", "ray.")
_STORES = ("torch.distributed.TCPStore", "torch.distributed.FileStore", "torch.distributed.HashStore")
_MEETING = frozenset({"set", "wait", "add", "compare_set"})


def reads_events_after(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether times of events that were recorded before `node` are read after it, as often, with no wait between."""
    own = list(_calls_beside(node, ctx))
    recorded = {_receiver(call) for call in own if callee_name(call) == "record" and _comes_before(call, node)}
    if not recorded:
        return False
    reads = [call for call in own if callee_name(call) == "elapsed_time" and _comes_before(node, call)]
    reads = [call for call in reads if ctx.heat(call) >= ctx.heat(node) and _is_recorded(call, recorded, own)]
    if not reads:
        return False
    first = min(reads, key=lambda call: (call.lineno, call.col_offset))
    between = [call for call in own if _comes_before(node, call) and _comes_before(call, first)]
    return not any(callee_name(call) == "synchronize" for call in between)


def hand_over_after(node: ast.Call, ctx: FileFacts) -> ast.Call | None:
    """The first call after `node` that hands something to another process, or meets one right behind `node`: what the
    device has not finished by then is not ordered for others by this process's streams.
    """
    meeting = _meeting_behind(node, ctx)
    if meeting is not None:
        return meeting
    later = [call for call in _calls_beside(node, ctx) if _comes_before(node, call) and _hands_over(call, ctx)]
    return min(later, key=lambda call: (call.lineno, call.col_offset), default=None)


def _calls_beside(node: ast.Call, ctx: FileFacts) -> Iterator[ast.Call]:
    """The calls of the function that `node` stands in, or of the module."""
    function = ctx.tree.function_of(node)
    return (part for part in walk(function or ctx.tree.module) if isinstance(part, ast.Call) and part is not node)


def _comes_before(one: ast.Call, other: ast.Call) -> bool:
    return (one.lineno, one.col_offset) < (other.lineno, other.col_offset)


def _receiver(call: ast.Call) -> str:
    return ast.dump(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def _is_recorded(read: ast.Call, recorded: set[str], own: list[ast.Call]) -> bool:
    """Whether what `began.elapsed_time(ended)` asks was recorded by then. Events that go by other names there, as in a
    loop over pairs of them, are some of those that were.
    """
    named = {_receiver(call) for call in own if callee_name(call) == "record"}
    asked = {ast.dump(item) for item in read.args} | {_receiver(read)}
    return all(item in recorded or item not in named for item in asked)


def _meeting_behind(node: ast.Call, ctx: FileFacts) -> ast.Call | None:
    """`dist.barrier()` as the next statement of the block."""
    statement = ctx.tree.statement_of(node)
    block = ctx.tree.block_of(statement)
    following = next(iter(block[block.index(statement) + 1 :]), None)
    held = following.value if isinstance(following, ast.Expr) else None
    return held if isinstance(held, ast.Call) and _meets(held, ctx) else None


def _meets(call: ast.Call, ctx: FileFacts) -> bool:
    target = ctx.target(call.func) or ""
    return target in distributed.BARRIERS or (not target and callee_name(call) in distributed.BARRIER_METHODS)


def _hands_over(call: ast.Call, ctx: FileFacts) -> bool:
    name, target = callee_name(call), ctx.target(call.func) or ""
    if name in _OBJECTS:
        return not target or target.startswith("torch.distributed.")
    if target.startswith(_OTHER_PROCESSES) or (name in _MEETING and target.startswith(_STORES)):
        return True
    if name not in _HANDING or not isinstance(call.func, ast.Attribute):
        return False
    if target:
        return False  # known, and nothing of another process: a queue of threads, `numpy.put`
    if name not in ("share_memory_", "remote") and not any(
        _may_hold_tensors(ctx.kind(item)) for item in arguments_of(call)
    ):
        return False
    ref = ctx.project_target(call.func)
    return ref is None or ref.kind != FUNCTION or _handed_on(Scope(ref.path, ref.name), ctx)


def _may_hold_tensors(kind: Kind) -> bool:
    return kind.tag not in (Tag.NUMBER, Tag.STRING, Tag.NONE, Tag.SHAPE, Tag.ARRAY)


def _handed_on(scope: Scope, ctx: FileFacts) -> bool:
    """Whether a method of the project that is called like it hands something over itself."""
    return any(last_of(call.func) in _HANDING | _OBJECTS for call in ctx.program.function(scope).calls)
