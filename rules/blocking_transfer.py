"""TPL101: host tensors that hot code moves to the device with a copy that waits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    COPYING_NAMES,
    Calls,
    Claims,
    Confidence,
    Context,
    Finding,
    Heat,
    Hop,
    Impact,
    Nodes,
    Rule,
    callee_name,
)
from perflint.api.phases import is_tried_out
from perflint.api.transfers import (
    MOVES,
    Copy,
    What,
    asks_not_to_block,
    copied_before,
    copy_at,
    cut_later,
    data_copy_at,
    first_of_each_block,
    is_pass,
    made_before,
)
from perflint.api.waits import (
    answers_on_host,
    costs_little,
    emptied_by,
    finds_little,
    first_of_block,
    impact_at,
    in_host_search,
    is_company,
    waited_before,
    waits_in_any_case,
    waits_later,
)
from perflint.api.words import short_text

from ._fixes.copy_advice import advice_for_copy, advice_for_data, fix_for_data
from ._fixes.copy_fixes import device_text, made_there, without_waiting
from ._shared.moved_memory import is_grid, is_new, is_of_loader


class BlockingTransfer(Rule):
    """A host-to-device copy without `non_blocking=True` blocks the host until all queued GPU work has finished.

    What it does

    Reports `.to(device)` and `.cuda()` of a host tensor on the hot path that does not pass `non_blocking=True`, or
    passes it for a batch in pageable memory (`torch.from_numpy(batch["points"])`, `torch.cat(views)`); constructors
    that copy host data (`torch.tensor(lengths, device=device)`, `x.new_tensor(counts)`), host tensors written over
    device tensors (`inputs.copy_(batch)`), and Python numbers written to single elements of a device tensor
    (`shapes[level, 0] = height`).

    Why is this slow?

    A blocking copy synchronizes the current stream. The host cannot queue the next step until all earlier work has
    finished. With `non_blocking=True` the copy is queued like a kernel. It is asynchronous only from pinned memory:
    from pageable memory the driver stages the bytes, which does not block up to 64 KB. If the same call changes the
    dtype, a blocking copy also converts on the CPU first. `pin_memory=True` pins the tensors of a loader's batch, not
    NumPy arrays, and not what the step makes of the batch on the host: their copies block despite `non_blocking=True`.

    What to do

    Write `batch.to(device, non_blocking=True)` and set `pin_memory=True` on the loader (see unpinned-loader).
    What an operation computes of the batch on the host is not pinned: copy the batch first, and compute on the device.
    Prefetching the next batch on the same stream gains nothing more; overlap needs a second stream.

    Write `torch.tensor(data).to(device, non_blocking=True)` for small data; `torch.full((), number, device=device)`
    fills one number on the device. Collect numbers in a list instead of writing them element by element.

    If the tensor has the same values on every step, create it on the device once, or register it as a buffer.

    Fix safety

    Safe if the destination is certainly CUDA (`.cuda()`, a literal "cuda"), or one of CUDA and CPU (`"cuda" if
    torch.cuda.is_available() else "cpu"`), the value is certainly a tensor of a loader's batch, and nothing writes to
    it afterwards: same bits. Unsafe if the device comes from an option, because it may be MPS. Unsafe if the call
    also converts to an integer type in a project that uses its own streams.

    Not reported

    - Device-to-host copies: the host needs the values.
    - Modules, one-time moves, dtype conversions, and tensors that are already on the device.
    - Batches that Lightning, Trainer or accelerate move.
    - Data other than a loader's batch behind a wait of the same step that stays; casts of a batch, and other results
      of operations on the host, behind a read.
    - Copies with `non_blocking=True` of labels and lengths, and of what is small or may be pinned.
    - Batches of an evaluation whose every step ends by reading its results, other than to collect them.
    - Passes that train nothing and that a program takes once.
    - What a function that answers on the host, with an action or an array, copies at its beginning.
    - Inputs and results of steps that generate text or query a server.
    - Calls whose receiver may be of a project class with its own `to` or `cuda` that does not accept the option.

    Known limitations

    On MPS an asynchronous copy can corrupt data when the source is rebound (pytorch#189690); keep the blocking copy
    there. If the same loop also reads a value back on every step (`.item()`), the gain is small.

    References

    - `torch.Tensor.to`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html
    - A guide on good usage of non_blocking and pin_memory:
      https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
    """

    code, name = "TPL101", "blocking-transfer"
    minor_beside_reads = True
    impact = Impact.MEDIUM
    listens = (Calls(*MOVES, *COPYING_NAMES), Nodes(ast.Assign))
    at_least = Heat.STEP
    needs_accelerator = True
    claims = Claims("to-device", "host-allocation", waits=False, adopts=("to-device",))

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if not isinstance(node, ast.Call) or callee_name(node) in COPYING_NAMES:
            yield from self._of_data(node, ctx)
            return
        if (again := copied_before(node, ctx)) is not None or cut_later(node, ctx) is not None:
            yield from self._needless(node, again, ctx)
            return
        copy = copy_at(node, ctx)
        if copy is None or copy.what not in (What.BATCH, What.MADE) or is_tried_out(node, ctx):
            return
        first = ctx.once(first_of_each_block, ctx.tree.scope_of(node))[id(node)]
        emptied = emptied_by(first.call, ctx)
        if costs_little(copy.call, ctx, is_drained=emptied is not None, is_batch=is_of_loader(copy)):
            return
        if emptied is not None and is_new(copy, ctx):
            return  # the bytes are staged whatever the call says, and nobody waits for anything else
        if emptied is not None and not is_of_loader(copy) and waited_before(emptied, first.call, ctx):
            return  # a part of a step that another wait has begun: it is no batch
        anyway = " despite `non_blocking`, from pageable memory" if asks_not_to_block(node, ctx) else ""
        words = (
            f"`{short_text(node, ctx, 60)}` {ctx.heat(node).phrase} and synchronizes{anyway}: the host blocks until "
        )
        words += "all queued GPU work has finished." if emptied is None else "the bytes have arrived."
        if emptied is not None:
            words += f" Little is gained while `{emptied.text}` also synchronizes."
        yield self.finding(
            node,
            ctx,
            words,
            advice=advice_for_copy(copy, ctx),
            fix=made_there(copy, device_text(node, ctx), ctx) if copy.what is What.MADE else without_waiting(copy, ctx),
            confidence=min(self.confidence, max(copy.value.certainty, Confidence.MEDIUM)),
            impact=_impact(copy, emptied, ctx) if first.call is node else Impact.LOW,
            block=first.call,
            related=(*made_before(copy.moved, self.code, ctx), *_here(emptied, ctx)),
        )

    def _of_data(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        """`torch.tensor(lengths, device=x.device)`, `shapes[level, 0] = height`"""
        copy = data_copy_at(node, ctx)
        if copy is None:
            return
        emptied, trains = emptied_by(copy.node, ctx), not is_pass(copy.node, ctx)
        is_kept = trains and emptied is not None and is_company(copy.node, ctx)
        if emptied is not None and not is_kept and not (trains and waits_later(emptied, copy.node, ctx)):
            return  # a few numbers, which nobody waits for
        if not trains and (waits_in_any_case(copy.node, ctx) or in_host_search(copy.node, ctx)):
            return
        if answers_on_host(copy.node, ctx):
            return
        yield self.finding(
            node,
            ctx,
            f"`{short_text(node, ctx, 60)}` {ctx.heat(node).phrase} and copies host data to the device: the host "
            "blocks until all queued GPU work has finished.",
            advice=advice_for_data(copy, ctx),
            fix=None if is_kept else fix_for_data(copy, ctx),
            confidence=min(self.confidence, copy.certainty),
            impact=impact_at(copy.node, ctx) if emptied is None else Impact.LOW,
            block=first_of_block(copy.node, ctx),
        )

    def _needless(self, node: ast.Call, again: ast.Call | None, ctx: Context) -> Iterator[Finding]:
        """The same data once more, or a whole of which a part is used."""
        part = cut_later(node, ctx)
        if ctx.role(node) == "data" or is_pass(node, ctx):
            return
        often = ctx.heat(node).phrase
        if again is not None:
            words = f"`{short_text(node, ctx, 60)}` {often} and copies again what line {again.lineno} copied."
            advice = "Copy it once, and use the result in both places."
        else:
            assert part is not None
            words = (
                f"`{short_text(node, ctx, 60)}` {often} and copies all, but only `{short_text(part, ctx, 40)}` is used."
            )
            advice = "Cut it on the host first, and copy the part that is used."
        yield self.finding(
            node,
            ctx,
            words,
            advice=advice,
            confidence=Confidence.MEDIUM,
            impact=Impact.LOW if finds_little(node, ctx) else Impact.MEDIUM,
            related=() if again is None else (ctx.hop(again, ctx.text(again)),),
        )


def _here(wait: Hop | None, ctx: Context) -> tuple[Hop, ...]:
    return () if wait is None or wait.path != ctx.path else (wait,)


def _impact(copy: Copy, emptied: Hop | None, ctx: Context) -> Impact:
    """By what is waited for: the whole queue, or the bytes alone. A pass that trains nothing counts less."""
    if emptied is not None or is_pass(copy.call, ctx):
        return Impact.LOW
    if copy.what is What.MADE and is_grid(copy, ctx):
        return Impact.HIGH
    # Another copy has just drained the queue, and these are a few numbers.
    return Impact.LOW if not is_of_loader(copy) and finds_little(copy.call, ctx) else Impact.MEDIUM
