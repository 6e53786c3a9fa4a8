"""TPL802: gradients reduced across processes for every micro-batch of an accumulated step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Context, Finding, Heat, Impact, Rule, callee_name
from perflint.api.names import MINDS_SYNC_ITSELF
from perflint.api.processes import (
    callers_train_under_ddp,
    clips_each_time,
    gathered_before,
    gathers_for,
    has_one_by_default,
    minds_reductions,
    no_sync_around_backward_only,
    step_of_caller,
    trains_under_ddp,
    turns_once_as_a_rule,
)
from perflint.api.words import short_call


class DdpSyncEveryMicrobatch(Rule):
    """Gradient accumulation under DDP without `no_sync` all-reduces the gradients of every micro-batch.

    What it does

    Reports backward passes of an accumulation loop under DDP without `no_sync`, and `no_sync` around the backward
    alone.

    Why is this slow?

    DDP starts to all-reduce gradients during each backward pass. A step of N micro-batches needs this only for the
    last one. Until then the sums can stay in `.grad`.

    What to do

    Run the forward and backward passes of all but the last micro-batch under `model.no_sync()`:

        with contextlib.nullcontext() if is_last else model.no_sync():
            loss = model(batch) / accumulation
            loss.backward()

    The forward pass must be inside: DDP decides there whether the next backward pass reduces. The last micro-batch of
    an incomplete step must synchronize, too.

    Fix safety

    No fix: which micro-batch is the last must be known before its forward pass.

    Not reported

    - Accumulation by a framework: accelerate, Fabric, Lightning, DeepSpeed.
    - Code that sets `require_backward_grad_sync` before the forward pass.
    - FSDP, whose `no_sync` keeps whole gradients in memory, apex's DDP, which has none, and code without DDP.
    - Micro-batches that each clip all gradients.
    - Loops that a random draw continues, unless it is written that most of them go on.
    - Forward passes of `model.module`, which bypass the wrapper: nothing is reduced then, which is a bug of its own.

    Known limitations

    Synchronized batch norm still communicates in every forward pass.

    Measured

    Four micro-batches took 168 ms, with `no_sync` 75 ms, with `no_sync` around the backward alone 136 ms (gloo, two
    processes on one machine). Across machines the gap grows.

    References

    - DistributedDataParallel.no_sync:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
    - Distributed data parallel, internal design: https://docs.pytorch.org/docs/stable/notes/ddp.html
    """

    code, name = "TPL802", "ddp-sync-every-microbatch"
    impact = Impact.HIGH
    listens = (Calls("backward", "step"),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        call = gathered_before(node, ctx) if callee_name(node) == "step" else node
        if call is None or (call is node and not _is_backward(node, ctx)):
            return
        useless = no_sync_around_backward_only(call, ctx)
        if useless is not None:
            yield self.finding(
                call,
                ctx,
                f"`{ctx.text(useless)}` contains the backward pass but not the forward pass, so DDP reduces "
                "gradients anyway.",
                advice="Move the forward pass into the `with`: DDP decides there whether the backward pass reduces.",
                related=(ctx.hop(useless, "gradients should stay local here"),),
            )
            return
        step = node if call is not node else gathers_for(node, ctx)
        behind = (
            step_of_caller(node, ctx) if step is None else ctx.hop(step, "the optimizer step of these micro-batches")
        )
        if behind is None:
            return
        certainty = callers_train_under_ddp(node, ctx) if step is None else trains_under_ddp(ctx)
        if certainty is None or minds_reductions(call, ctx) or clips_each_time(call, ctx):
            return
        if any(turns_once_as_a_rule(loop) for loop in ctx.loops(call)[:1]):
            return  # most steps have one micro-batch
        single = step is not None and has_one_by_default(step, ctx)
        yield self.finding(
            call,
            ctx,
            f"`{short_call(call, ctx, 60)}` {ctx.heat(call).phrase} and all-reduces gradients each time; only the last "
            f"micro-batch of a step needs it.{' By default a step has one.' if single else ''}",
            impact=Impact.LOW if single else Impact.HIGH,
            advice="Run the forward and backward passes of all but the last micro-batch under `no_sync()`.",
            confidence=certainty,
            related=(behind,),
            block=step,
        )


def _is_backward(node: ast.Call, ctx: Context) -> bool:
    if not isinstance(node.func, ast.Attribute):
        return False
    return not MINDS_SYNC_ITSELF.search(ctx.text(node.func.value))
