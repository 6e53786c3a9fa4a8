"""TPL204: the whole device, or all processes, waited for on every step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.api import (
    FUNCTION,
    Calls,
    Claims,
    Confidence,
    Context,
    Finding,
    FunctionFacts,
    Heat,
    Impact,
    Rule,
    Scope,
    callee_name,
    distributed,
    is_constant,
    last_name,
    pattern,
    walk,
)

from ._shared.callees import last_of
from ._shared.generating import beside_generation
from ._shared.handed_over import hand_over_after, reads_events_after
from ._shared.loops import CLOCKS
from ._shared.rarely import is_between_phases
from ._shared.waits import is_exceptional

_TIMES = CLOCKS | {"elapsed_time", "now", "timeit"}
_MEASURING = pattern(
    r"bench|profil|timing|timer|time_|_time|perf|speed|latenc|throughput|measure|warm_?up", re.IGNORECASE
)
_BENCHMARKS = pattern(r"(?:^|[/_])bench(?:marks?|marking)?[/_.]")
_OWNERS = pattern(r"accelerator|fabric|strategy|distributed|dist$|state$|comm$|torch$|cuda$", re.IGNORECASE)
_HARDWARE = pattern(r"cuda|device|gpu|is_available|distributed|world_size|rank|is_initialized", re.IGNORECASE)
#: Names of what can be waited for and is no collective.
_NO_WORK = pattern(r"event|stream|barrier|process|thread", re.IGNORECASE)
#: Names of options that ask for a wait; `no_sync` is the accumulation of gradients.
_OPTION = pattern(r"(?<!no_)sync|barrier|debug|profil", re.IGNORECASE)
#: Names of options that ask for times.
_CLOCKED = pattern(r"(?:^|_)(?:time|timed|timing|timer|bench\w*|measure\w*)(?:_|$)", re.IGNORECASE)
#: What another process may wait for, where it happens as often as the wait.
_FILES = frozenset({"save", "load", "save_checkpoint", "makedirs", "rmtree"})
#: What such a wait is there for: streams of its own, copies that are read later, files that others read, and messages
#: between two processes, whose buffers are not ordered by streams in all releases.
_REASONS = _FILES | frozenset(
    "Stream stream wait_stream record_stream non_blocking CUDAGraph graph pynvml batch_isend_irecv".split()
)

_DEVICE = "all work on the device"


class ExplicitSynchronize(Rule):
    """A full synchronization on every step drains the GPU queue before the next kernels are queued.

    What it does

    Reports `torch.cuda.synchronize()`, `dist.barrier()` and similar calls on the hot path.

    Why is this slow?

    `torch.cuda.synchronize()` blocks the host until all work on the device has finished; `dist.barrier()` blocks
    until every process has reached it. Streams already order work on the device, and collectives wait for their
    inputs, so neither makes a result more correct. The cost is the host's lead over the device, on every step.

    What to do

    Delete the call. To time a step, use CUDA events or the profiler, or synchronize once around many steps. If
    processes must agree (who writes a file, when to stop), synchronize under a guard: every N steps or once per
    epoch.

    Fix safety

    No fix: if the call protects an asynchronous copy to the host, deleting it creates a race.

    Not reported

    - Benchmarks and profiling code, and events whose time is read next.
    - Code that uses its own streams.
    - Copies to the host with `non_blocking=True` that are read next: the synchronization protects the data.
    - Hand-over to another process: queues, pipes, shared memory, remote calls, collectives of objects.
    - Barriers around files that another process writes, messages between two processes, and processes that have
      generated texts of different lengths.
    - Phase changes: weights are offloaded or swapped, or a checkpoint is written.
    - Error handling and every-N guards.

    References

    - `torch.cuda.synchronize`: https://docs.pytorch.org/docs/stable/generated/torch.cuda.synchronize.html
    - CUDA semantics, asynchronous execution:
      https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution
    """

    code, name = "TPL204", "explicit-synchronize"
    impact = Impact.HIGH
    listens = (Calls("synchronize", *sorted(distributed.BARRIER_METHODS), "monitored_barrier"),)
    at_least = Heat.STEP
    needs_accelerator = True
    claims = Claims("synchronize", adopts=("synchronize",))

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        waits_for = _waits_for(node, ctx)
        if waits_for is None or is_exceptional(node, ctx) or _has_reason(node, ctx) or _is_of_a_stream(node):
            return
        if beside_generation(node, ctx) or is_between_phases(node, ctx):
            return
        for_device = waits_for == _DEVICE
        if for_device and reads_events_after(node, ctx):
            return
        handed = hand_over_after(node, ctx) if for_device else None
        if handed is not None and ctx.heat(handed) >= ctx.heat(node) and _waits_for(handed, ctx) is None:
            return
        timed = _is_timed(node, ctx)
        if timed and not _is_in_training_loop(node, ctx):
            return
        text = ctx.text(node)
        yield self.finding(
            node,
            ctx,
            f"`{text}` {ctx.heat(node).phrase}, and the host waits there for {waits_for}.",
            advice=_advice(handed, ctx, timed=timed),
            confidence=Confidence.MEDIUM if timed or ctx.target(node.func) is None else None,
        )


def _advice(handed: ast.Call | None, ctx: Context, *, timed: bool) -> str:
    if handed is not None and _waits_for(handed, ctx) is not None:
        return f"Wait every n steps, together with `{ctx.text(handed)}`: others may rely on what is finished by then."
    if handed is not None:
        return f"Wait only where `{ctx.text(handed)}` hands over what the device has to have finished."
    if timed:
        return "Time with CUDA events read every n steps or the profiler, or synchronise once around many steps."
    return "Delete it: kernels and collectives are ordered without it."


def _is_of_a_stream(node: ast.Call) -> bool:
    """`torch.cuda.synchronize(self.copy_stream)`: what is meant is the work of one stream."""
    given = [*node.args, *(item.value for item in node.keywords)]
    # `stream.device` is a whole device again.
    return any("stream" in last_name(item.value if isinstance(item, ast.Subscript) else item).lower() for item in given)


def _waits_for(node: ast.Call, ctx: Context) -> str | None:
    target = ctx.target(node.func)
    if target in distributed.SYNCHRONIZE - {"torch.cuda.Stream.synchronize"}:
        return _DEVICE
    if target in distributed.BARRIERS:
        return "all other processes"
    if target is None and (behind := _behind_helper(node, ctx)) is not None:
        return behind
    name = callee_name(node)
    if (
        name in distributed.BARRIER_METHODS
        and isinstance(node.func, ast.Attribute)
        and (target is None or "accelerat" in target)
    ):
        if ctx.project_target(node.func) is None and _OWNERS.search(ctx.text(node.func.value).rpartition(".")[2]):
            return "all other processes"
    return None


def _behind_helper(node: ast.Call, ctx: Context) -> str | None:
    """What a helper of the project waits for that does nothing else: what it asks before is only whether there is
    anything to wait for.
    """
    ref = ctx.project_target(node.func)
    if ref is None or ref.kind != FUNCTION or node.args or node.keywords:
        return None
    scope = Scope(ref.path, ref.name)
    facts = ctx.program.function(scope)
    if not _asks_for_hardware_only(facts):
        return None
    found = None
    for call in facts.calls:
        name = last_of(call.func)
        waits = name == "synchronize" or name in distributed.BARRIER_METHODS
        if waits and _is_sure_to_wait(call.func, scope, ctx):
            found = _DEVICE if name == "synchronize" else "all other processes"
        elif waits or _HARDWARE.search(name) is None:
            return None
    return found if not facts.loops and not facts.is_generator else None


def _asks_for_hardware_only(facts: FunctionFacts) -> bool:
    """Whether all names in a helper are those of what it calls and of devices and processes: `if DEBUG` and
    `if self.enabled` decide whether it waits at all.
    """
    known = {facts.name, "self", "torch", "type", "warnings", *facts.binds}
    for call in facts.calls:
        name = call.func if isinstance(call.func, str) else last_of(call.func)
        known.update(name.split("."))
    words = set(facts.identifiers.split()) - known
    return bool(facts.identifiers) and all(_HARDWARE.search(word) and not _OPTION.search(word) for word in words)


def _is_sure_to_wait(func: object, scope: Scope, ctx: Context) -> bool:
    """`torch.cuda.synchronize()`, `dist.barrier()`, `get_torch_device().synchronize()`"""
    if isinstance(func, str):
        names = {ref.name for ref in ctx.program.refs(func, scope)}
        return not names.isdisjoint(distributed.SYNCHRONIZE | distributed.BARRIERS)
    return isinstance(func, tuple) and func[1][:1] == ("call",) and bool(_HARDWARE.search(last_of(func[1][1])))


def _has_reason(node: ast.Call, ctx: Context) -> bool:
    """Whether the function around it does something that such a wait may protect."""
    function = ctx.tree.function_of(node)
    if _is_asked_for(node, ctx) or _is_benchmarked(ctx):
        return True
    if function is not None and _is_thin(function):
        return True  # a helper that does nothing else: where it is called is what matters
    for part in walk(function or ctx.tree.module):
        if isinstance(part, ast.Call) and callee_name(part) in _REASONS and part is not node:
            if not (callee_name(part) in _FILES and ctx.heat(part) < Heat.STEP):
                return True
        elif isinstance(part, ast.keyword) and part.arg == "non_blocking" and _copies_to_host(part, ctx):
            return True
        elif isinstance(part, ast.keyword) and part.arg == "async_op" and is_constant(part.value, True):  # noqa: FBT003
            return not any(_waits_itself(other) for other in walk(function or ctx.tree.module))
    return False


def _is_benchmarked(ctx: Context) -> bool:
    """Whether the file takes the times of something, and trains nothing: all that waits there is for them."""
    return bool(_BENCHMARKS.search(ctx.path)) and ctx.mentions(*_TIMES) and not ctx.mentions("optim", "optimizer")


def _waits_itself(node: ast.AST) -> bool:
    """`work.wait()`: then nothing is left of a collective that a synchronisation would have to wait for. Events, of
    the device or of threads, are waited for in the same words.
    """
    if not isinstance(node, ast.Call) or callee_name(node) != "wait" or node.args:
        return False
    return isinstance(node.func, ast.Attribute) and _NO_WORK.search(last_name(node.func.value)) is None


def _is_asked_for(node: ast.Call, ctx: Context) -> bool:
    """Whether a test decides about it: an option of that name, or for processes anything but whether there are any."""
    is_barrier = callee_name(node) != "synchronize"
    child: ast.AST = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.For, ast.While)):
            return False
        if isinstance(outer, ast.If):
            if is_barrier and not _HARDWARE.search(ctx.text(outer.test)):
                return True
            if child not in outer.orelse and _OPTION.search(ctx.text(outer.test)):
                return True
            if isinstance(outer.test, (ast.Name, ast.Attribute)) and _CLOCKED.search(last_name(outer.test)):
                return True
        child = outer
    return False


def _copies_to_host(keyword: ast.keyword, ctx: Context) -> bool:
    call = ctx.tree.parent(keyword)
    return isinstance(call, ast.Call) and any(
        isinstance(item, ast.Constant) and item.value == "cpu" for item in call.args
    )


def _is_thin(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    statements = [part for part in walk(function) if isinstance(part, ast.stmt) and part is not function]
    work = [part for part in statements if not isinstance(part, (ast.If, ast.Pass, ast.Return, ast.Import, ast.Try))]
    return all(isinstance(part, ast.Expr) or _is_asking(part) for part in work)


def _is_asking(statement: ast.stmt) -> bool:
    """`world_size = get_world_size()`"""
    value = statement.value if isinstance(statement, ast.Assign) else None
    return isinstance(value, ast.Call) and bool(_HARDWARE.search(callee_name(value)))


def _is_timed(node: ast.Call, ctx: Context) -> bool:
    """Whether a clock is read in the same function, so that the wait is there for the number."""
    function = ctx.tree.function_of(node)
    return any(isinstance(part, ast.Call) and callee_name(part) in _TIMES for part in walk(function or ctx.tree.module))


def _is_in_training_loop(node: ast.Call, ctx: Context) -> bool:
    """Whether the wait stands in the loop that trains, outside of code that is there to measure."""
    function = ctx.tree.function_of(node)
    if ctx.role(node) != "train" or not any(ctx.body_heat(loop) >= Heat.STEP for loop in ctx.loops(node)):
        return False
    if re.search("bench", ctx.path, re.IGNORECASE) or _MEASURING.search(ctx.path.rpartition("/")[2]):
        return False
    return not (function and _MEASURING.search(function.name))
