"""TPL204: the whole device, or all processes, waited for on every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Calls,
    Claims,
    Confidence,
    Context,
    Effect,
    Effects,
    Finding,
    Heat,
    Impact,
    Rule,
    distributed,
    is_wrapper,
)
from perflint.api.phases import asks_hardware, beside_generation, is_between_phases
from perflint.api.waits import (
    first_of_block,
    hand_over_after,
    impact_at,
    is_exceptional,
    is_measurement,
    is_option_for,
    meets_for_files,
    protects_data,
    reads_clock_behind,
    reads_events_after,
    trains,
    waits_spared_by,
)
from perflint.api.words import short_text

from ._fixes.deleted_waits import without_wait

_WORDS = {Effect.WAITS: "all queued GPU work has finished", Effect.MEETS: "all other processes have arrived"}


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

    Unsafe: deleting the call is right unless something relies on it that perflint does not see: an asynchronous copy to
    the host, or another process. There is no fix where the call belongs to a measurement or to a hand-over, and where
    another wait would take its place.

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
    listens = (
        Calls(
            "synchronize",
            *sorted(distributed.BARRIER_METHODS),
            "monitored_barrier",
            doing=(Effect.WAITS, Effect.MEETS),
        ),
    )
    at_least = Heat.STEP
    needs_accelerator = True
    claims = Claims("synchronize", adopts=("synchronize",))

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        effect = _waits_for(node, ctx)
        if effect is None or is_exceptional(node, ctx) or _is_told_at_calls(node, effect, ctx):
            return
        if beside_generation(node, ctx) or is_between_phases(node, ctx):
            return
        if effect is Effect.MEETS:
            if _is_for_some(node, ctx) or meets_for_files(node, ctx) or _is_without_steps(node, ctx):
                return
        elif reads_events_after(node, ctx):
            return
        if protects_data(node, ctx):
            return
        handed = hand_over_after(node, ctx) if effect is Effect.WAITS else None
        if handed is not None and ctx.heat(handed) >= ctx.heat(node) and _waits_for(handed, ctx) is None:
            return
        if is_option_for(node, ctx) or is_measurement(node, ctx):
            return
        timed = reads_clock_behind(node, ctx)
        if timed and not trains(node, ctx):
            return
        # Without it, the first of them would wait in its place.
        others = waits_spared_by(node, ctx.tree.scope_of(node), ctx) if effect is Effect.WAITS else []
        others.sort(key=lambda other: (other.lineno, other.col_offset))  # type: ignore[attr-defined]
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` {ctx.heat(node).phrase}: the host blocks until {_WORDS[effect]}.",
            advice=_advice(handed, others, ctx, timed=timed),
            fix=without_wait(node, effect, ctx) if handed is None and not timed and not others else None,
            related=tuple(ctx.hop(other, f"`{short_text(other, ctx, 40)}` waits in its place") for other in others),
            confidence=Confidence.MEDIUM if timed or ctx.target(node.func) is None else None,
            impact=impact_at(node, ctx),
            block=first_of_block(node, ctx),
        )


def _advice(handed: ast.Call | None, others: list[ast.AST], ctx: Context, *, timed: bool) -> str:
    if handed is not None and _waits_for(handed, ctx) is not None:
        return (
            f"Synchronize every N steps, together with `{ctx.text(handed)}`: other code may rely on finished work then."
        )
    if handed is not None:
        return f"Synchronize only where `{ctx.text(handed)}` passes the results on."
    if timed:
        return (
            "Time with the profiler or with CUDA events that are read every N steps, or synchronize once around "
            "many steps."
        )
    if others:
        first = short_text(others[0], ctx, 40)
        return f"Delete it, and read `{first}` and what else is read behind it only on the steps that need it."
    return "Delete it: streams and collectives already order the work."


def _waits_for(node: ast.Call, ctx: Context) -> Effect | None:
    """What a call waits for, itself or as a wrapper of the project that does nothing else."""
    effects: Effects = ctx.effects(node)
    for effect in _WORDS:
        if effects.surely(effect) and (is_wrapper(effects, effect) or not _runs_project(node, ctx)):
            return effect
    return None


def _runs_project(node: ast.Call, ctx: Context) -> bool:
    index = ctx.call_index(node)
    return any(edge.index == index for edge in ctx.program.graph.outgoing.get(ctx.scope(node), ()))


def _is_told_at_calls(node: ast.Call, effect: Effect, ctx: Context) -> bool:
    """Whether it stands in a wrapper that does nothing else: what counts is where that is called."""
    scope = ctx.scope(node)
    facts = ctx.program.function(scope)
    if facts.loops or ctx.tree.function_of(node) is None or not is_wrapper(ctx.program.effects(scope), effect):
        return False
    return bool(ctx.program.callers(scope))


def _is_for_some(node: ast.Call, ctx: Context) -> bool:
    """Whether a test decides that processes meet, other than one whether there are any others."""
    tests = [test for test, _ in ctx.control_flow(node).decided_by(node) if isinstance(ctx.tree.parent(test), ast.If)]
    return any(not asks_hardware(test, ctx) for test in tests)


def _is_without_steps(node: ast.Call, ctx: Context) -> bool:
    """Whether gradients are computed around it and nothing is trained with them: what is compared is how long it takes,
    or what comes out.
    """
    return ctx.role(node) == "train" and not trains(node, ctx)
