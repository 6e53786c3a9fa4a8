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
    loaders,
)
from perflint.api.loading import (
    LOADER_NAMES,
    hands_samples_on,
    is_copied,
    is_of_notebook,
    is_one_batch,
    is_plain_loader,
    is_zero,
    makes_own_batches,
    moves_to_device,
    needs_workers,
    option,
    purpose,
    uses_accelerator,
    workers,
)

from ._shared.jax import trains_with_jax

_WORKERS_FIRST = "Add workers first: pinning on the main thread costs as much as it saves. "


class UnpinnedLoader(Rule):
    """A DataLoader without pinned memory forces every host-to-device copy through a staging buffer.

    What it does

    Reports training `DataLoader`s without `pin_memory` whose batches are copied to a CUDA device.

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
    - Loaders that one evaluation iterates once.
    - Collate functions that create no tensors, or return a project class without `pin_memory`, or one that moves
      itself.
    - Loops that move nothing, what is made of the batch before the move (`batch.float().to(device)`, sorted or
      stacked rows), or indices alone.
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
    listens = (Calls(*LOADER_NAMES),)
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not is_plain_loader(node, ctx) or option(node, "pin_memory", ctx) is not None:
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
            + "Pass `pin_memory=torch.cuda.is_available()`, and copy the batch with `non_blocking=True`.",
            fix=self._fix(node, staffed, ctx),
            impact=Impact.LOW if staffed == "none" or evaluates else Impact.MEDIUM,
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
        elif option(node, "collate_fn", ctx) is not None:
            reason = "the collate function may return batches that cannot be pinned"
        elif not _plain_dataset(node, ctx):
            reason = "the dataset is unknown, and may return batches that cannot be pinned"
        elif any(map(ctx.program.whole.is_set_anywhere, _PINNING)):
            reason = "a class of the project defines `pin_memory` itself, or `__getattr__`"
        elif _may_be_unpinnable(node, ctx):
            reason = "the dataset may return sparse or device tensors, which cannot be pinned"
        return Fix(
            "Pin the batches if CUDA is available",
            Applicability.UNSAFE if reason else Applicability.SAFE,
            (*imports, ctx.edit.set_keyword(node, "pin_memory", f"{torch}.cuda.is_available()")),
            reason=reason,
        )


def _plain_dataset(node: ast.Call, ctx: Context) -> bool:
    """Whether the dataset's class is in sight; the base class alone says nothing about what it hands out."""
    dataset = option(node, "dataset", ctx)
    refs = ctx.refs(dataset) if dataset is not None else ()
    return bool(refs) and all(
        ref.path or ref.name in loaders.IN_MEMORY_DATASETS | loaders.DECODING_DATASETS for ref in refs
    )


#: What a batch is asked for when it is to be pinned, and what answers that without a word of it.
_PINNING = ("pin_memory", "__getattr__", "__getattribute__")
#: What makes tensors that cannot be pinned, and what workers need to make some on a device.
_SPARSE = ("to_sparse", "sparse_coo_tensor", "sparse_csr_tensor", "to_sparse_csr")
_SPAWNS = ("set_start_method", "get_context")


def _may_be_unpinnable(node: ast.Call, ctx: Context) -> bool:
    dataset = option(node, "dataset", ctx)
    paths = {ref.path for ref in ctx.refs(dataset) if ref.path} if dataset is not None else set()
    if ctx.program.mentions(_SPARSE, paths):
        return True
    spawns = option(node, "multiprocessing_context", ctx) is not None or ctx.program.mentions(_SPAWNS)
    return spawns and ctx.program.mentions({"cuda", "device"}, paths)
