"""TPL902: the host's clock read around work that the device has not finished."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Confidence,
    Context,
    Finding,
    Impact,
    Nodes,
    Rule,
    guards,
)
from perflint.api.waits import is_exceptional, timed_region, unfinished_work, uses_accelerator
from perflint.api.words import short_call

_CLOCKS = frozenset(
    "time.time time.perf_counter time.monotonic time.time_ns time.perf_counter_ns time.monotonic_ns "
    "timeit.default_timer".split()
)
_CLOCK_NAMES = tuple(sorted({name.rpartition(".")[2] for name in _CLOCKS}))


class UnsynchronizedTiming(Rule):
    """A timing around device work without a synchronization measures only how long it took to queue the work.

    What it does

    Reports `time.time()`, `time.perf_counter()` and similar around device work, with no synchronization before the
    second reading.

    Why is this slow?

    It is wrong rather than slow, and decisions rest on it. Calls on an accelerator return as soon as their kernels
    are queued [doc]. The clock is read while the device still works, and the work appears at the next
    synchronization.

    What to do

    Measure with `torch.utils.benchmark.Timer` or CUDA events. Or call `torch.cuda.synchronize()` before each reading
    of the clock, outside of the loop: a synchronization on every step costs more than the timing is worth.

    Fix safety

    No fix: a synchronization on the hot path is a cost of its own.

    Not reported

    - Timed code that synchronizes anyway: `.item()`, `.cpu()`, or printing a result.
    - Timings of data loading, and of text generation, which reads every token.
    - Rates since the start of a loop, which only the last iterations distort.
    - Programs that run only on the CPU.
    - Timed code that calls functions of the project that may synchronize.

    References

    - torch.utils.benchmark: https://docs.pytorch.org/docs/stable/benchmark_utils.html
    - CUDA semantics, asynchronous execution:
      https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution
    """

    code, name = "TPL902", "unsynchronized-timing"
    impact = Impact.MEDIUM
    confidence = Confidence.MEDIUM
    listens = (Nodes(ast.BinOp, mentioning=_CLOCK_NAMES),)
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.BinOp)
        if not isinstance(node.op, ast.Sub) or not uses_accelerator(ctx):
            return
        region = timed_region(node, ctx)
        if region is None or is_exceptional(node, ctx) or guards.RARE in ctx.guards(node):
            return
        work = unfinished_work(region, node, ctx)
        if work is None:
            return
        yield self.finding(
            node,
            ctx,
            f"The clock is read while the device still runs `{short_call(work, ctx, 50)}`: this measures only the "
            "time to queue the work.",
            advice="Use `torch.utils.benchmark` or CUDA events, or synchronize once before the clock is read.",
            related=(ctx.hop(work, "queued here, not synchronized"),),
        )
