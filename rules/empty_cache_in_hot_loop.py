"""TPL304: the caching allocator emptied on every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Applicability, Calls, Context, Finding, Fix, Heat, Impact, Phase, Rule, walk
from perflint.api.phases import (
    beside_generation,
    gives_up_the_step,
    has_run_a_whole_loop,
    is_beside_an_engine,
    is_between_phases,
    is_load_shedding,
    is_outside_training,
    is_weighed,
    is_where_something_moved,
    measures_memory,
)

from ._fixes.emptied_branches import emptied

_TARGETS = ("torch.cuda.empty_cache", "torch.xpu.empty_cache", "torch.mps.empty_cache", "torch.accelerator.empty_cache")


class EmptyCacheInHotLoop(Rule):
    """Emptying the allocator's cache on every step forces the next step to request its memory from the driver again.

    What it does

    Reports `torch.cuda.empty_cache()` and similar on the hot path.

    Why is this slow?

    `torch.cuda.empty_cache()` returns cached blocks to the driver. The next step pays `cudaMalloc` for each of them,
    and freeing synchronizes. PyTorch gains no memory: it reuses cached blocks anyway.

    What to do

    Delete the call. Against fragmentation set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`. To release memory
    to another process, empty the cache between phases.

    Fix safety

    Unsafe: a step that only just fits may run out of memory without the call. Results are the same bits.

    Not reported

    - Calls in an out-of-memory handler, under an every-N guard or a memory threshold, or between phases.
    - Calls after a model is deleted or parts of it are moved, or where a batch is abandoned or a module is not
      trained.
    - Code where an inference engine shares the device, steps that generate text, and iterations that run a model many
      times (a volume window by window, a sample step by step).
    - Code under an option that trades speed for memory, or with a comment that says that the call makes the step
      slower.
    - Calls beside a complete training in the same function, or before the peak is measured.

    Measured

    Hugging Face documents about 10 % slower steps for its `torch_empty_cache_steps` option.

    References

    - `torch.cuda.memory.empty_cache`:
      https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.empty_cache.html
    - CUDA semantics, memory management: https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-memory-management
    """

    code, name = "TPL304", "empty-cache-in-hot-loop"
    numerics = "same bits"
    impact = Impact.HIGH
    listens = (Calls("empty_cache"),)
    at_least = Heat.STEP
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not ctx.is_call_of(node, *_TARGETS) or is_load_shedding(node, ctx) or _stands_beside_cuda(node, ctx):
            return
        if beside_generation(node, ctx) or is_between_phases(node, ctx) or is_outside_training(node, ctx):
            return
        if measures_memory(node, ctx) or gives_up_the_step(node, ctx) or is_weighed(node, ctx):
            return
        if is_beside_an_engine(node, ctx) or has_run_a_whole_loop(node, ctx) or is_where_something_moved(node, ctx):
            return
        statement = ctx.tree.statement_of(node)
        fix = None
        if isinstance(statement, ast.Expr) and statement.value is node:
            fix = Fix(
                "Delete the call",
                Applicability.UNSAFE,
                ctx.edit.delete_statement(emptied(statement, ctx)),
                reason="a step that only just fits may run out of memory",
            )
        yield self.finding(
            node,
            ctx,
            (
                f"`{ctx.text(node)}` {ctx.heat(node).phrase}: the next step must allocate its memory from the driver "
                "again."
            ),
            advice="Delete it: PyTorch reuses cached blocks by itself.",
            fix=fix,
            impact=_IMPACTS.get(ctx.phase(node).phase, self.impact),
        )


#: An evaluation and a generation wait for their results in any case, and do other work beside.
_IMPACTS = {Phase.EVALUATE: Impact.LOW, Phase.GENERATE: Impact.MEDIUM, Phase.SERVE: Impact.MEDIUM}


def _stands_beside_cuda(node: ast.Call, ctx: Context) -> bool:
    """Whether this is the MPS or XPU arm of a helper that has one for CUDA as well: one finding says it all."""
    function = ctx.tree.function_of(node)
    if function is None or ctx.is_call_of(node, "torch.cuda.empty_cache"):
        return False
    return any(ctx.is_call_of(part, "torch.cuda.empty_cache") for part in walk(function))
