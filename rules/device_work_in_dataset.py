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
    walk,
)
from perflint.api.gradients import name_of_whole
from perflint.api.loading import goes_back_to_device, is_asked_for_device, makes_batches
from perflint.api.transfers import aligns

_TENSORS = (Tag.TENSOR, Tag.BATCH, Tag.OUTPUT, Tag.UNKNOWN, Tag.MAPPING, Tag.SEQUENCE)
#: What has a device that is wanted, not one that it is on.
_SETTINGS = frozenset("self cls torch args cfg config conf opt opts options params hparams settings".split())
#: Ways to start workers that take nothing over of the process they are started from.
_ANEW = ("spawn", "forkserver")
_DRAWING = ("sample", "sample_batch")
_BUFFERS = ("buffer", "replay", "rollout", "memory")


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
        if ctx.role(node) != "data" or _is_buffer(node, ctx) or makes_batches(node, ctx):
            return
        if _is_told_by_device(node, ctx) or _is_run_there(node, ctx):
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


def _is_told_by_device(node: ast.AST, ctx: Context) -> bool:
    """Whether this only runs where a tensor is on a device already: `if image.device.type == "cuda"`."""
    return any(_asks_for_device(part) for test, _ in ctx.conditions(node) for part in walk(test))


def _is_run_there(node: ast.Call, ctx: Context) -> bool:
    """Whether a whole batch is moved for a model that runs while batches are put together, in workers that are
    started anew: such may use the device, and nothing but that one copy is made.
    """
    function, outer = ctx.tree.function_of(node), ctx.tree.parent(node)
    if function is None or "collat" not in function.name or not isinstance(outer, ast.Call) or outer.func is node:
        return False
    return ctx.program.whole.starts_anew(ctx.path, ("set_start_method", "get_context"))


def _asks_for_device(node: ast.AST) -> bool:
    """`image.device`, `self.images.is_cuda`; `self.device` is where somebody wants it."""
    if not isinstance(node, ast.Attribute) or node.attr not in ("device", "is_cuda"):
        return False
    return node.attr == "is_cuda" or name_of_whole(node.value) not in _SETTINGS


def _is_buffer(node: ast.Call, ctx: Context) -> bool:
    """Whether the samples come from a replay buffer, which lives beside the training loop: by its name, or since it
    draws the batches itself.
    """
    owner = ctx.tree.class_of(node)
    if owner is None:
        return False
    draws = any(isinstance(item, ast.FunctionDef) and item.name in _DRAWING for item in owner.body)
    return draws or any(word in owner.name.lower() for word in _BUFFERS)
