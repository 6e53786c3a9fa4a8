"""TPL102: batches that cannot be copied asynchronously."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Confidence,
    Context,
    Finding,
    Fix,
    Impact,
    Rule,
)
from perflint.api.loading import (
    LOADER_NAMES,
    can_be_pinned,
    hands_samples_on,
    is_copied,
    is_left_off,
    is_of_notebook,
    is_one_batch,
    is_zero,
    makes_own_batches,
    moves_to_device,
    needs_workers,
    option,
    purpose,
    uses_accelerator,
    why_not_pinned,
    workers,
)

from ._shared.jax import trains_with_jax

_WORKERS_FIRST = "Add workers first: pinning on the main thread costs as much as it saves. "


class UnpinnedLoader(Rule):
    """A DataLoader without pinned memory forces every host-to-device copy through a staging buffer.

    What it does

    Reports training `DataLoader`s without `pin_memory`, or with an option for it that is off by default, whose
    batches are copied to a CUDA device.

    Why is this slow?

    A host-to-device copy is asynchronous only from page-locked (pinned) memory. From pageable memory the driver
    stages the bytes first and may block on the stream, even with `non_blocking=True`. With workers, a thread of the
    loader pins each batch while the step runs. Without workers the main thread pins, which costs as much as it saves.

    What to do

    Pass `pin_memory=torch.cuda.is_available()` (a plain `True` warns on machines without CUDA), and copy the batch
    with `non_blocking=True`.

    Fix safety

    Safe with a literal number of workers, the default collate function and a dataset that perflint can see: values,
    order and random numbers are the same bits. Otherwise unsafe: without workers the main thread pins, and a custom
    batch type may not support pinning.

    Not reported

    - Programs that run on the CPU or on MPS.
    - Datasets that return device tensors, and loops in which Hugging Face's `Trainer` builds the loader.
    - Loaders that one evaluation iterates once, and those in functions that no program calls.
    - Collate functions that create no tensors, or return a project class without `pin_memory`, or one that moves
      itself.
    - Loops that move nothing, what is made of the batch before the move (`batch.float().to(device)`, clamped, sorted
      or stacked rows), or indices alone.
    - Loaders whose pass is one batch (`batch_size=len(dataset)`).
    - Loaders without workers, unless making a sample is known to be expensive (then add workers first).

    Known limitations

    Pinned batches take page-locked memory: prefetch factor x workers x batch size. Batches of a few kilobytes gain
    little.

    References

    - torch.utils.data, memory pinning: https://docs.pytorch.org/docs/stable/data.html#memory-pinning
    - A guide on good usage of non_blocking and pin_memory:
      https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
    """

    code, name = "TPL102", "unpinned-loader"
    numerics = "same bits"
    impact = Impact.MEDIUM
    listens = (Calls(*LOADER_NAMES, doing=("DataLoader",)),)
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        asked = option(node, "pin_memory", ctx)
        if not can_be_pinned(node, ctx) or (asked is not None and not is_left_off(asked, ctx)):
            return
        if not (uses_accelerator(ctx) and ctx.program.whole.has_hot_loops):
            return
        if moves_to_device(option(node, "dataset", ctx), ctx):
            return
        if ctx.program.drives(ctx.path) or hands_samples_on(node, ctx) or not is_copied(node, ctx):
            return
        if makes_own_batches(node, ctx) or trains_with_jax(ctx) or is_one_batch(node, ctx):
            return
        count = option(node, "num_workers", ctx)
        staffed = "none" if count is not None and is_zero(count, ctx) else workers(node, ctx)
        evaluates = purpose(node, ctx) == "eval"
        if staffed == "none" and (evaluates or is_of_notebook(node, ctx) or not needs_workers(node, ctx)):
            return  # pinning would run on the main thread, where it costs about what it saves
        yield self.finding(
            node,
            ctx,
            "This loader's batches are in pageable memory, so each copy to the device is staged and blocks.",
            advice=(_WORKERS_FIRST if staffed == "none" else "")
            + ("Switch `pin_memory` on by default" if asked else "Pass `pin_memory=torch.cuda.is_available()`")
            + ", and copy the batch with `non_blocking=True`.",
            fix=None if asked else self._fix(node, staffed, ctx),
            impact=Impact.LOW if staffed == "none" or evaluates or asked else Impact.MEDIUM,
            confidence=Confidence.HIGH if ctx.program.whole.has_training else Confidence.MEDIUM,
        )

    @staticmethod
    def _fix(node: ast.Call, staffed: str, ctx: Context) -> Fix:
        torch, imports = ctx.edit.ensure_import("torch", at=node)
        reason = ""
        if staffed == "none":
            reason = "without workers the main thread pins, which may cost more than it saves"
        elif staffed == "variable":
            reason = "the number of workers is unknown"
        else:
            reason = why_not_pinned(node, ctx)
        return Fix(
            "Pin the batches if CUDA is available",
            Applicability.UNSAFE if reason else Applicability.SAFE,
            (*imports, ctx.edit.set_keyword(node, "pin_memory", f"{torch}.cuda.is_available()")),
            reason=reason,
        )
