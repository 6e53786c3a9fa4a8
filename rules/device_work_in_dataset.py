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
    Scope,
    Tag,
    callee_name,
    has_unpacking,
    is_from,
    keyword,
    loaders,
    walk,
)
from perflint.api.gradients import name_of_whole
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
        if ctx.role(node) != "data" or _is_buffer(node, ctx) or _makes_batches(node, ctx):
            return
        if _is_told_by_device(node, ctx) or _is_run_there(node, ctx):
            return
        if (
            aligns(node, ctx)
            or _goes_back(node, ctx)
            or _is_asked_for(node, ctx)
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


def _goes_back(node: ast.Call, ctx: Context) -> bool:
    """Whether a tensor goes back to where it was brought from, `device = wave.device` before `wave = wave.cpu()`: to
    the host, like everything that samples are made of.
    """
    target, function = node.args[0] if node.args else keyword(node, "device"), ctx.tree.function_of(node)
    if not isinstance(target, ast.Name) or function is None:
        return False
    origins = [item for item in ctx.inference.origins(target) if item is not target]
    owners = [item.value for item in origins if isinstance(item, ast.Attribute) and item.attr == "device"]
    return len(owners) == len(origins) > 0 and all(
        any(_brings_to_host(part, owner.id) for part in walk(function)) if isinstance(owner, ast.Name) else False
        for owner in owners
    )


def _brings_to_host(part: ast.AST, name: str) -> bool:
    """`wave.data.cpu().numpy()`"""
    if not isinstance(part, ast.Call) or callee_name(part) not in ("cpu", "numpy"):
        return False
    return any(isinstance(item, ast.Name) and item.id == name for item in walk(part))


def _is_asked_for(node: ast.Call, ctx: Context) -> bool:
    """Whether a helper moves to the device its caller names, and `None` may be what the dataset says."""
    target = node.args[0] if node.args else keyword(node, "device")
    function = ctx.tree.function_of(node)
    if not isinstance(target, ast.Name) or function is None:
        return False
    arguments = function.args
    return any(item.arg == target.id for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def _makes_batches(node: ast.Call, ctx: Context) -> bool:
    """Whether whole batches are made here or by what calls it, one copy each, in the process that asks for them."""
    scope: Scope | None = ctx.scope(node)
    seen: set[Scope] = set()
    while scope is not None and scope not in seen:
        seen.add(scope)
        if scope.function.rpartition(".")[2] in loaders.BATCH_MAKERS:
            return True
        edge = ctx.program.hottest_call(scope)
        scope = None if edge is None else edge.caller
    return False


def _is_buffer(node: ast.Call, ctx: Context) -> bool:
    """Whether the samples come from a replay buffer, which lives beside the training loop: by its name, or since it
    draws the batches itself.
    """
    owner = ctx.tree.class_of(node)
    if owner is None:
        return False
    draws = any(isinstance(item, ast.FunctionDef) and item.name in _DRAWING for item in owner.body)
    return draws or any(word in owner.name.lower() for word in _BUFFERS)
