"""The code between two readings of a clock, and the device's work that nobody has waited for where it ends."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.phases import SETTLES
from perflint.analysis.values.kind import Kind, Place, Tag
from perflint.ir.calls import arguments_of, callee_name
from perflint.syntax.named import gives
from perflint.torch_model.effects import Effect

_CLOCKS = frozenset(
    "time.time time.perf_counter time.monotonic time.time_ns time.perf_counter_ns time.monotonic_ns "
    "timeit.default_timer".split()
)
#: Calls that leave the device alone.
_HARMLESS = frozenset(
    "range enumerate len zip iter next append min max isinstance getattr hasattr time perf_counter monotonic time_ns "
    "perf_counter_ns monotonic_ns default_timer zero_grad step train eval requires_grad_ no_grad inference_mode "
    "autocast enable_grad set_grad_enabled nullcontext set_epoch tqdm trange manual_seed set_description size dim to "
    "cuda backward clip_grad_norm_ scale parameters".split()
)
#: What a function of the project may do that waits for the device, or hides whether it does.
_WAITING = (
    Effect.WAITS,
    Effect.WAITS_PART,
    Effect.MEETS,
    Effect.READS,
    Effect.GENERATES,
    Effect.LOGS,
    Effect.FILES,
    Effect.UNKNOWN,
)
_SHORT_CIRCUITS = frozenset({"cpu", "mps"})


class Region(NamedTuple):
    """The source between two readings of a clock, as (line, column) pairs; two pieces where it runs round a loop."""

    pieces: tuple[tuple[tuple[int, int], tuple[int, int]], ...]

    def holds(self, node: ast.AST) -> bool:
        place = (node.lineno, node.col_offset)  # type: ignore[attr-defined]
        return any(start < place < end for start, end in self.pieces)


def timed_region(node: ast.BinOp, ctx: FileFacts) -> Region | None:
    """The source between the two readings of a clock that are subtracted."""
    if not isinstance(node.right, ast.Name):
        return None
    readings = [reading for reading in _readings(node, ctx) if gives(reading, node.right.id)]
    if not readings or _is_of_all_turns(readings, node, ctx):
        return None
    if isinstance(node.left, ast.Call) and ctx.target(node.left.func) in _CLOCKS:
        end = (node.lineno, node.col_offset)
    elif isinstance(node.left, ast.Name):
        ends = [reading for reading in _readings(node, ctx) if gives(reading, node.left.id)]
        ends = [reading for reading in ends if _place(reading) < _place(node)]
        if not ends:
            return None
        end = _place(ends[-1])
    else:
        return None
    return _between(readings, end, node, ctx)


def _is_of_all_turns(readings: Sequence[ast.Assign], end: ast.AST, ctx: FileFacts) -> bool:
    """Whether a clock is read in a loop that it was started before, `done / (time.time() - start)`: the device is not
    far behind, and what is missing of the last turn is little of all.
    """
    around = ctx.loops(end)
    return bool(around) and all(around[0] not in ctx.loops(reading) for reading in readings)


def _readings(node: ast.AST, ctx: FileFacts) -> list[ast.Assign]:
    """Assignments of a clock's reading to a name, in the function around `node`."""
    function = ctx.tree.function_of(node) or ctx.tree.module
    return [
        part
        for part in ctx.walk(function) if isinstance(part, ast.Assign)
        if isinstance(part.value, ast.Call) and ctx.target(part.value.func) in _CLOCKS
    ]  # fmt: skip


def _place(node: ast.AST) -> tuple[int, int]:
    return (node.lineno, node.col_offset)  # type: ignore[attr-defined]


def _between(starts: Sequence[ast.Assign], end: tuple[int, int], node: ast.AST, ctx: FileFacts) -> Region | None:
    before = max((_place(item) for item in starts if _place(item) < end), default=None)
    for loop in ctx.loops(node)[:1]:
        again = [_place(item) for item in starts if _place(item) > end and loop in ctx.loops(item)]
        if again and (before is None or before < _place(loop)):
            stop = (loop.end_lineno or loop.lineno, loop.end_col_offset or 0)
            return Region(((max(again), stop), (_place(loop.body[0]), end)))
    return None if before is None else Region(((before, end),))


def unfinished_work(region: Region, node: ast.AST, ctx: FileFacts) -> ast.Call | None:
    """The last call that keeps the device busy when the clock is read; None where anything may have waited for it."""
    function = ctx.tree.function_of(node) or ctx.tree.module
    work: ast.Call | None = None
    waits: list[ast.Call] = []
    for part in ctx.walk(function):
        if not isinstance(part, (ast.Call, ast.FormattedValue)) or not region.holds(part):
            continue
        if isinstance(part, ast.FormattedValue):
            if not _is_rare(part, node, ctx) and _may_be_tensor(part.value, ctx):
                return None
        elif _is_work(part, ctx):
            work = part if work is None or _place(part) > _place(work) else work
        elif _may_wait(part, ctx):
            if not _is_rare(part, node, ctx):
                return None
            waits.append(part)
    # What runs on few turns is waited for on these: `if t % every == 0: action = model(seen).cpu()`.
    if work is not None and any(_place(wait) > _place(work) and not _is_rare(wait, work, ctx) for wait in waits):
        return None
    return work


def _is_work(call: ast.Call, ctx: FileFacts) -> bool:
    if callee_name(call) == "backward":
        kind = ctx.kind(call.func.value) if isinstance(call.func, ast.Attribute) else None
        return kind is not None and kind.tag is Tag.TENSOR and kind.place is not Place.HOST
    kind = ctx.kind(call.func)
    if kind.tag is not Tag.MODULE or (isinstance(call.func, ast.Attribute) and callee_name(call) in _HARMLESS):
        return False
    result = ctx.kind(call)
    return result.place.is_accelerator and any(_is_moved(item, ctx) for item in call.args)


def _is_moved(value: ast.expr, ctx: FileFacts) -> bool:
    """Whether an argument certainly is on the device: the model is then, too."""
    kind: Kind = ctx.kind(value.value if isinstance(value, ast.Starred) else value)
    return kind.place in (Place.DEVICE, Place.TARGET)


def _may_wait(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call may make the host wait for the device, as far as can be seen."""
    name = callee_name(call)
    if SETTLES.search(name):
        return True
    if name == "to" and any(isinstance(item, ast.Constant) and item.value in _SHORT_CIRCUITS for item in call.args):
        return True
    if name == "step" and isinstance(call.func, ast.Attribute) and "scaler" in ctx.text(call.func.value).lower():
        return True  # asks the device whether any gradient overflowed
    if name in _HARMLESS:
        return False
    target = ctx.target(call.func)
    if target is not None and target.startswith("torch."):
        return False
    if isinstance(call.func, ast.Attribute) and ctx.kind(call.func.value).holds_tensors:
        return False
    kind = ctx.kind(call.func)
    if kind.tag is Tag.MODULE:
        return False
    if ctx.project_target(call.func) is not None:
        return ctx.effects(call).does(*_WAITING)
    if not target:
        return True
    return any(_may_be_tensor(item, ctx) for item in arguments_of(call))


def _may_be_tensor(value: ast.expr, ctx: FileFacts) -> bool:
    if isinstance(value, (ast.Constant, ast.JoinedStr)):
        return False
    kind = ctx.kind(value)
    return not kind.known or kind.holds_tensors or kind.tag in (Tag.SEQUENCE, Tag.MAPPING)


def _is_rare(part: ast.AST, node: ast.AST, ctx: FileFacts) -> bool:
    """Whether something of the timed part does not run on most of its turns."""
    return len(ctx.guards(part)) > len(ctx.guards(node))
