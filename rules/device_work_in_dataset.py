"""TPL108: samples moved to the device one by one, where the batch is not made yet."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Calls,
    Confidence,
    Context,
    Finding,
    Heat,
    Impact,
    Place,
    Provenance,
    Rule,
    Tag,
    has_unpacking,
    is_from,
)
from perflint.api.loading import (
    goes_back_to_device,
    is_asked_for_device,
    is_replay_buffer,
    is_run_in_workers,
    is_told_by_device,
    makes_batches,
)
from perflint.api.transfers import aligns

_TENSORS = (Tag.TENSOR, Tag.BATCH, Tag.OUTPUT, Tag.UNKNOWN, Tag.MAPPING, Tag.SEQUENCE)


class DeviceWorkInDataset(Rule):
    """A dataset that moves each sample to the device makes many small blocking copies, and fails in forked workers.

    What it does

    Reports `.to(device)` and `.cuda()` in `__getitem__`, `collate_fn` and the functions that they call.

    Why is this slow?

    Each `.to(device)` is a separate copy from pageable memory. It blocks until all queued GPU work has finished, once
    per sample instead of once per batch. With workers it fails: CUDA cannot be initialized again in a forked process,
    and device tensors should not be sent between processes.

    What to do

    Return host tensors, set `pin_memory=True` on the loader, and move the whole batch in the training loop with
    `non_blocking=True`.

    Fix safety

    No fix: the move belongs to another function, the one that receives the batch.

    Not reported

    - Datasets whose data are all on the device and are only indexed, without workers.
    - Decoders that decode on the device, and replay buffers.
    - Dtype conversions, moves to the host, and moves back to the original device.

    References

    - torch.utils.data, memory pinning: https://docs.pytorch.org/docs/stable/data.html#memory-pinning
    - CUDA in multiprocessing:
      https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cuda-in-multiprocessing
    """

    code, name = "TPL108", "device-work-in-dataset"
    impact = Impact.HIGH
    listens = (Calls("to", "cuda"),)
    at_least = Heat.STEP
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute) or has_unpacking(node):
            return
        if ctx.role(node) != "data" or is_replay_buffer(node, ctx) or makes_batches(node, ctx):
            return
        if is_told_by_device(node, ctx) or is_run_in_workers(node, ctx):
            return
        if (
            aligns(node, ctx)
            or goes_back_to_device(node, ctx)
            or is_asked_for_device(node, ctx)
            or isinstance(ctx.tree.parent(node), ast.Expr)
        ):
            return  # what is moved and not taken is a module: a tensor would stay where it is
        moved = ctx.kind(node.func.value)
        if moved.tag not in _TENSORS or not ctx.kind(node).on_accelerator:
            return
        # What is made beside a sample, on whatever device that is on, is on the host like the sample.
        beside = (
            moved.place is Place.TARGET
            and is_from(moved.origin, Provenance.CONSTRUCTOR, Provenance.LIKE)
            and ctx.kind(node).on_cuda
        )
        if moved.on_accelerator and not beside:
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` runs once per sample: a small copy that synchronizes, and an error in forked workers.",
            advice=(
                "Return host tensors, pin them in the loader, and move the whole batch in the loop with "
                "`non_blocking=True`."
            ),
            confidence=Confidence.HIGH if moved.known else Confidence.MEDIUM,
        )
