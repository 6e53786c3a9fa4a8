"""Whether the batches of a loader are pinned, and what may keep them from being pinned."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.loading.loaders import option
from perflint.ir.computed import expression
from perflint.torch_model import loaders

#: What a batch is asked for when it is to be pinned, and what answers that without a word of it.
_PINNING = ("pin_memory", "__getattr__", "__getattribute__")
#: What makes tensors that cannot be pinned, and what workers need to make some on a device.
_SPARSE = ("to_sparse", "sparse_coo_tensor", "sparse_csr_tensor", "to_sparse_csr")
_SPAWNS = ("set_start_method", "get_context")


def is_left_off(value: ast.expr, ctx: FileFacts) -> bool:
    """Whether an option of a loader is one of the program, and off where nobody switches it on. A literal is the
    choice of who wrote it.
    """
    if isinstance(value, ast.Constant):
        return False
    asked = expression(value)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "get":
        if not ctx.refs(value.func.value) and isinstance(asked, tuple) and asked[0] == "call":
            # What is looked up by a text in a mapping that nobody sees made is a setting, whatever the mapping's name.
            asked = ("call", "config.get", *asked[2:])
    return ctx.program.is_off_by_default(asked, ctx.scope(value))


def why_not_pinned(call: ast.Call, ctx: FileFacts) -> str:
    """What may keep the batches of a loader from being pinned; empty where nothing does."""
    if option(call, "collate_fn", ctx) is not None:
        return "the collate function may return batches that cannot be pinned"
    if not _plain_dataset(call, ctx):
        return "the dataset is unknown, and may return batches that cannot be pinned"
    if any(map(ctx.program.whole.is_set_anywhere, _PINNING)):
        return "a class of the project defines `pin_memory` itself, or `__getattr__`"
    if _may_be_unpinnable(call, ctx):
        return "the dataset may return sparse or device tensors, which cannot be pinned"
    return ""


def _plain_dataset(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether the dataset's class is in sight; the base class alone says nothing about what it hands out."""
    dataset = option(call, "dataset", ctx)
    refs = ctx.refs(dataset) if dataset is not None else ()
    return bool(refs) and all(
        ref.path or ref.name in loaders.IN_MEMORY_DATASETS | loaders.DECODING_DATASETS for ref in refs
    )


def _may_be_unpinnable(call: ast.Call, ctx: FileFacts) -> bool:
    dataset = option(call, "dataset", ctx)
    paths = {ref.path for ref in ctx.refs(dataset) if ref.path} if dataset is not None else set()
    if ctx.program.mentions(_SPARSE, paths):
        return True
    spawns = option(call, "multiprocessing_context", ctx) is not None or ctx.program.mentions(_SPAWNS)
    return spawns and ctx.program.mentions({"cuda", "device"}, paths)
