"""TPL208: memory statistics asked for on every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Context, Finding, Heat, Impact, Rule, callee_name
from perflint.api.phases import is_between_phases, is_for_a_profiler, is_measured_each_turn, is_tried_out
from perflint.api.waits import Use, is_exceptional, region_of, use_of

_STATISTICS = frozenset(
    "memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_cached max_memory_cached "
    "memory_stats memory_summary memory_snapshot mem_get_info list_gpu_processes utilization temperature power_draw "
    "clock_rate memory_usage".split()
)
_MANAGEMENT = frozenset(
    "nvmlDeviceGetMemoryInfo nvmlDeviceGetUtilizationRates nvmlDeviceGetTemperature nvmlDeviceGetPowerUsage "
    "showUtilization getGPUs".split()
)
_MODULES = tuple(f"torch.{name}." for name in ("cuda", "xpu", "mps", "npu", "accelerator"))


class DeviceStatsEveryStep(Rule):
    """Memory statistics are collected on every step, but are needed only on few.

    What it does

    Reports `torch.cuda.memory_allocated()`, `memory_summary()`, `mem_get_info()`, NVML calls and similar on the hot
    path.

    Why is this slow?

    `torch.cuda.memory_allocated()` and similar build all of the allocator's statistics in Python to return one
    number. `memory_summary()` formats all of it. `mem_get_info()` and NVML query the driver. Each call is cheap, but
    it runs on the host before the next kernel.

    What to do

    Query every N steps, where the number is printed. `torch.cuda.max_memory_allocated()` once per epoch reports the
    peak.

    Fix safety

    No fix: only the author knows how often the number is needed.

    Not reported

    - Queries under an every-N guard, once per epoch, or in an out-of-memory handler.
    - Numbers that decide what is done next (a test of free memory).
    - Classes that measure memory, calls that pass the number to a profiler, and code under an option for timings.
    - Loops that measure: one synthetic input, timing by events or by a loop of their own.

    References

    - `torch.cuda.memory.memory_allocated`:
      https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.memory_allocated.html
    - `torch.cuda.memory.max_memory_allocated`:
      https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.max_memory_allocated.html
    """

    code, name = "TPL208", "device-stats-every-step"
    impact = Impact.LOW
    listens = (Calls(*sorted(_STATISTICS | _MANAGEMENT)),)
    at_least = Heat.STEP
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not _asks(node, ctx) or is_exceptional(node, ctx) or is_between_phases(node, ctx):
            return
        if use_of(node, ctx) in (Use.CHECK, Use.BRANCH):
            return  # it decides what is done next
        asked = [part for part in ctx.walk(region_of(node, ctx)) if isinstance(part, ast.Call) and _asks(part, ctx)]
        hot = [part for part in asked if ctx.heat(part) >= Heat.STEP]
        if hot and node is not min(hot, key=lambda part: (part.lineno, part.col_offset)):
            return  # told of once
        if is_tried_out(node, ctx) or is_measured_each_turn(node, ctx) or is_for_a_profiler(node, ctx):
            return
        more = f" It is one of {len(hot)} such calls here." if len(hot) > 1 else ""
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` {ctx.heat(node).phrase} and collects all memory statistics each time.{more}",
            advice="Call it every N steps, or once per epoch for the peak.",
        )


def _asks(node: ast.Call, ctx: Context) -> bool:
    name = callee_name(node)
    if name not in _STATISTICS and name not in _MANAGEMENT:
        return False
    target = ctx.target(node.func)
    return target is not None and (target.startswith(_MODULES) or name in _MANAGEMENT)
