"""TPL102: batches that cannot be copied asynchronously."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Applicability, Calls, Confidence, Context, Finding, Fix, Impact, Rule, loaders

from ._loaders import (
    LOADER_NAMES,
    dataset_work,
    is_plain_loader,
    moves_to_device,
    option,
    purpose,
    uses_accelerator,
    workers,
)


class UnpinnedLoader(Rule):
    """A loader without pinned memory makes every copy to the device go through a staging buffer, in step with the host.

    Why it is slow
    A copy to a CUDA device is asynchronous only from page-locked memory. From ordinary memory the driver stages the
    bytes first and may wait for the stream, whatever `non_blocking` says. With workers, a thread of the loader pins
    each batch while the step runs; with no workers the main thread pins, which costs as much as it saves.

    What to write instead
    `pin_memory=torch.cuda.is_available()`, which stays silent on machines without CUDA (a bare `True` warns there each
    epoch), together with `non_blocking=True` where the batch is moved.

    When to leave it
    Programs that run on the CPU or on MPS, datasets that hand out device tensors, and loops in which Hugging Face's
    `Trainer` builds the loader (it pins by default): perflint is silent there. Custom batch classes without a
    `pin_memory` method are returned unpinned, so nothing is gained. Pinned batches take page-locked memory:
    prefetch factor x workers x batch size.

    Fix safety
    Safe with a literal number of workers, the default collate function and a dataset in sight: values, order and random
    numbers stay the same bits. Otherwise unsafe: with no workers pinning runs on the main thread, and a custom batch
    may not know how to be pinned.
    """

    code, name = "TPL102", "unpinned-loader"
    impact = Impact.MEDIUM
    listens = (Calls(*LOADER_NAMES),)
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not is_plain_loader(node, ctx) or option(node, "pin_memory") is not None:
            return
        if not uses_accelerator(ctx) or not ctx.program.has_hot_loops or moves_to_device(option(node, "dataset"), ctx):
            return
        if _hands_out_numpy(node, ctx):
            return
        staffed = workers(node)
        if staffed == "none" and (dataset_work(node, ctx) in ("memory", "iterable") or purpose(node, ctx) == "eval"):
            return  # pinning would run on the main thread, where it costs about what it saves
        yield self.finding(
            node,
            ctx,
            "This loader's batches lie in pageable memory, so each copy to the device is staged and waits."
            + (
                " With 0 workers, workers come first: pinning would run on the main thread."
                if staffed == "none"
                else ""
            ),
            advice="Pass `pin_memory=torch.cuda.is_available()`, and `non_blocking=True` where the batch is moved.",
            fix=self._fix(node, staffed, ctx),
            impact=Impact.LOW if staffed == "none" or purpose(node, ctx) == "eval" else Impact.MEDIUM,
            confidence=Confidence.HIGH if ctx.program.has_training else Confidence.MEDIUM,
        )

    @staticmethod
    def _fix(node: ast.Call, staffed: str, ctx: Context) -> Fix:
        torch, imports = ctx.edit.ensure_import("torch")
        reason = ""
        if staffed == "none":
            reason = "without workers the main thread pins, which may cost more than it saves"
        elif staffed == "variable":
            reason = "the number of workers is not known here"
        elif option(node, "collate_fn") is not None:
            reason = "the collate function may return batches that cannot be pinned"
        elif not _plain_dataset(node, ctx):
            reason = "the dataset is not known, and may hand out batches that cannot be pinned"
        return Fix(
            "Pin the batches when CUDA is there",
            Applicability.UNSAFE if reason else Applicability.SAFE,
            (*imports, ctx.edit.set_keyword(node, "pin_memory", f"{torch}.cuda.is_available()")),
            reason=reason,
        )


def _plain_dataset(node: ast.Call, ctx: Context) -> bool:
    """Whether the dataset's class is in sight; the base class alone says nothing about what it hands out."""
    dataset = option(node, "dataset")
    refs = ctx.refs(dataset) if dataset is not None else ()
    return bool(refs) and all(
        ref.path or ref.name in loaders.IN_MEMORY_DATASETS | loaders.DECODING_DATASETS for ref in refs
    )


def _hands_out_numpy(node: ast.Call, ctx: Context) -> bool:
    collate = option(node, "collate_fn")
    return collate is not None and ("numpy" in ctx.text(collate) or ctx.target(collate) == "list")
