"""What a wait for the whole device, or for all processes, is there for: each reason is tied to the very wait by order
or dataflow, and does not hold because a word of it stands nearby.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.kind import Place
from perflint.finding import Heat
from perflint.ir.calls import arguments_of, callee_name, is_constant, keyword
from perflint.syntax.walk import walk
from perflint.torch_model.effects import Effect

#: What hands buffers to another process, whose arrival the streams of this one do not order in all releases.
_MESSAGES = frozenset({"batch_isend_irecv"})
_STREAMS = ("torch.cuda.stream", "torch.cuda.Stream", "torch.cuda.StreamContext")
_JOINING = frozenset({"wait_stream", "wait_event"})
_CAPTURES = ("torch.cuda.graph", "torch.cuda.make_graphed_callables")


def protects_data(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether something queued before a wait for the device is read after it without any order of its own."""
    region = ctx.tree.function_of(node) or ctx.tree.module
    calls = [part for part in walk(region) if isinstance(part, ast.Call) and part is not node]
    before = [call for call in calls if ctx.control_flow(node).reaches(call, node)]
    return (
        any(_copies_to_host(call, ctx) or callee_name(call) in _MESSAGES for call in before)
        or any(_is_left_running(call, region, ctx) for call in before)
        or _ends_a_side_stream(node, before, ctx)
        or _is_beside_a_capture(node, ctx)
    )


def meets_for_files(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether processes meet for a file: written or read in the same block, or in a branch of it, right before or right
    after the meeting, as often.
    """
    statement = ctx.tree.statement_of(node)
    block = ctx.tree.block_of(statement)
    at = block.index(statement)
    for item in (*block[max(at - 2, 0) : at], *block[at + 1 : at + 3]):
        for part in ctx.walk(item):
            if isinstance(part, ast.Call) and ctx.effects(part).does(Effect.FILES, Effect.LOADS):
                if ctx.heat(part) >= min(ctx.heat(node), Heat.STEP):
                    return True
    return False


def _copies_to_host(call: ast.Call, ctx: FileFacts) -> bool:
    """`x.to("cpu", non_blocking=True)`, `buffer.copy_(x, non_blocking=True)` into a buffer that is on the host."""
    if not is_constant(keyword(call, "non_blocking"), True) or not isinstance(call.func, ast.Attribute):  # noqa: FBT003
        return False
    if call.func.attr == "copy_":
        return ctx.kind(call.func.value).place is not Place.DEVICE
    return any(isinstance(item, ast.Constant) and item.value == "cpu" for item in arguments_of(call))


def _is_left_running(call: ast.Call, region: ast.AST, ctx: FileFacts) -> bool:
    """Whether a collective runs beside the step and nobody waits for it: `dist.all_reduce(x, async_op=True)`."""
    if not is_constant(keyword(call, "async_op"), True):  # noqa: FBT003
        return False
    statement = ctx.tree.statement_of(call)
    if isinstance(statement, ast.Expr) and statement.value is call:
        return True
    held = {part.id for part in walk(statement) if isinstance(part, ast.Name)} - {
        part.id for item in arguments_of(call) for part in walk(item) if isinstance(part, ast.Name)
    }
    waited = {name for name, loop in _waited(region) if name in held or loop & held}
    return not waited


def _waited(region: ast.AST) -> Iterator[tuple[str, set[str]]]:
    """The names whose `wait` is called, each with the names of what it is taken from in a loop."""
    sources: dict[str, set[str]] = {}
    for part in walk(region):
        if isinstance(part, (ast.For, ast.comprehension)) and isinstance(part.target, ast.Name):
            names = {item.id for item in walk(part.iter) if isinstance(item, ast.Name)}
            sources.setdefault(part.target.id, set()).update(names)
    for part in walk(region):
        if isinstance(part, ast.Call) and callee_name(part) == "wait" and isinstance(part.func, ast.Attribute):
            if isinstance(part.func.value, ast.Name):
                yield part.func.value.id, sources.get(part.func.value.id, set())


def _ends_a_side_stream(node: ast.Call, before: list[ast.Call], ctx: FileFacts) -> bool:
    """Whether work was queued on another stream since the last time that this one waited for it."""
    entered = [
        call for call in before if ctx.target(call.func) in _STREAMS[:1] + _STREAMS[2:] and _is_entered(call, ctx)
    ]
    if not entered:
        return False
    joined = [call for call in before if callee_name(call) in _JOINING]
    flow = ctx.control_flow(node)
    last = max(entered, key=lambda call: (call.lineno, call.col_offset))
    return not any(
        flow.dominates(call, node) and call.lineno > last.lineno and not _is_inside(call, last, ctx) for call in joined
    )


def _is_entered(call: ast.Call, ctx: FileFacts) -> bool:
    return isinstance(ctx.tree.parent(call), ast.withitem)


def _is_inside(call: ast.Call, entered: ast.Call, ctx: FileFacts) -> bool:
    around = ctx.tree.parent(ctx.tree.parent(entered) or entered)
    return any(outer is around for outer in ctx.tree.ancestors(call))


def _is_beside_a_capture(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a graph is captured in the same block: that happens once for all replays."""
    return any(
        isinstance(part, ast.Call) and ctx.target(part.func) in _CAPTURES
        for item in ctx.tree.block_of(ctx.tree.statement_of(node))
        for part in walk(item)
    )
