"""TPL102: batches that cannot be copied asynchronously."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    CallFacts,
    Calls,
    Confidence,
    Context,
    Finding,
    Fix,
    Impact,
    Rule,
    Scope,
    callee_name,
    last_of,
    loaders,
    ways_in,
)
from perflint.api.loading import (
    LOADER_NAMES,
    Run,
    batch_names,
    called_in,
    calls_in,
    hands_samples_on,
    is_hook,
    is_of_notebook,
    is_plain_loader,
    is_zero,
    makes_own_batches,
    moves_to_device,
    needs_workers,
    option,
    purpose,
    runs,
    use,
    uses_accelerator,
    workers,
)
from perflint.api.names import MOVES

from ._shared.jax import trains_with_jax

_WORKERS_FIRST = "Add workers first: pinning on the main thread costs as much as it saves. "
_CONVERSIONS = frozenset({"float", "double", "half", "long", "int"})
#: What a file says that means to compute with its batches, not only to prepare them.
_DEVICE_WORDS = ("to", "cuda", "device", "prepare", "fit", "Trainer", "backward")
_PREPARERS = ("prepare", "prepare_data_loader", "setup_dataloaders", "LightningModule", "deepspeed")


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
    - Loops that move nothing, or convert before the move (`batch.float().to(device)`).
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
        if ctx.program.drives(ctx.path) or hands_samples_on(node, ctx) or not _is_copied(node, ctx):
            return
        if makes_own_batches(node, ctx) or trains_with_jax(ctx):
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


def _is_copied(call: ast.Call, ctx: Context) -> bool:
    """Whether its batches go to the device again and again: in the loops over it, where these are in sight."""
    loops = runs(call, ctx)
    if not loops:
        if _is_gathered(call, ctx):
            return False
        if is_hook(call, ctx, "train_dataloader", "val_dataloader"):
            return True
        return purpose(call, ctx) != "eval" and not _only_prepares(call, ctx)
    counting = [run for run in loops if use(run, ctx) != "look" or run.again]
    return any(not _takes_apart(run, ctx) if use(run, ctx) == "hand on" else _moves(run, ctx) for run in counting)


def _is_gathered(call: ast.Call, ctx: Context) -> bool:
    """`frames = list(tqdm(loader))`: workers that are asked for numbers, of which nothing is moved as it comes."""
    if _goes_into_list(call, ctx):
        return True
    statement = ctx.tree.parent(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        return False
    made = ctx.inference.flow.definition_at(targets[0])
    uses = ctx.inference.flow.uses_of(made) if made is not None else []
    return bool(uses) and all(_goes_into_list(used, ctx) for used in uses)


def _goes_into_list(used: ast.expr, ctx: Context) -> bool:
    outer = ctx.tree.parent(used)
    while isinstance(outer, ast.Call) and used in outer.args:
        if isinstance(outer.func, ast.Name) and outer.func.id in ("list", "tuple"):
            return True
        if callee_name(outer) not in ("tqdm", "track", "progress"):
            return False
        used, outer = outer, ctx.tree.parent(outer)
    return False


def _takes_apart(run: Run, ctx: Context) -> bool:
    """Whether a generator hands out the samples of each batch, one by one."""
    facts = ctx.program.function(run.scope)
    return bool(facts.yields) and all(facts.innermost_loop(context) != run.loop for _, context in facts.yields)


def _only_prepares(call: ast.Call, ctx: Context) -> bool:
    """Whether the file goes through batches itself and speaks of no device: it writes them to files, or counts them.
    Not where another file has the loader made.
    """
    program = ctx.program
    if _is_made_for_others(ctx.scope(call), ctx):
        return False
    loops = (
        program.roots.loops.get((Scope(ctx.path, name), index))
        for name, facts in ctx.summary.functions.items()
        for index in range(len(facts.loops))
    )
    return any(loop is not None and loop.role == "batches" for loop in loops) and not ctx.mentions(*_DEVICE_WORDS)


def _is_made_for_others(scope: Scope, ctx: Context) -> bool:
    """Whether a function is run by another file, itself or through its callers here."""
    return any(edge.caller.path != ctx.path for edge in ways_in(scope, ctx))


def _moves(run: Run, ctx: Context) -> bool:
    """Whether the body of a loop, or a function that it calls, moves something, or a library does so for it."""
    if ctx.program.mentions(_PREPARERS, _around(run, ctx)):
        return True
    own, names = calls_in(run, ctx), batch_names(run, ctx)
    if any(last_of(call.func) in ("to", "cuda") and _is_of(call.func, names) for call in own):
        # Parts of the batch are moved as they come: what else is made of arrays says nothing of it.
        return not any(_makes_anew(call) and _is_made_of(call, names) for call in own)
    calls = [*own, *(call for scope in called_in(run, ctx) for call in ctx.program.function(scope).calls)]
    return any(MOVES.search(last_of(call.func)) for call in calls) and not any(_makes_anew(call) for call in calls)


def _around(run: Run, ctx: Context) -> set[str] | None:
    """The files that may have a library move the batches of a loop: all, where it only hands them on."""
    if ctx.program.function(run.scope).loops[run.loop].kind == "comprehension":
        return None
    scopes = [run.scope, *(edge.caller for edge in ctx.program.callers(run.scope))]
    called = [edge.callee for scope in scopes for edge in ctx.program.graph.outgoing.get(scope, ())]
    return {ctx.path, *(scope.path for scope in (*scopes, *called))}


def _is_made_of(call: CallFacts, names: frozenset[str]) -> bool:
    """Whether `images.float().to()` or `from_numpy(images)` is of one of `names`."""
    if isinstance(call.func, tuple):
        return _is_of(call.func[1][1], names)
    return any(_is_of(value, names) for value in call.args)


def _is_of(value: object, names: frozenset[str]) -> bool:
    """Whether a value is one of `names` or a part of it: `images.cuda`, `batch[0].to`, `batch.labels.cuda`."""
    while isinstance(value, tuple) and value[0] in ("attr", "item"):
        value = value[1]
    return isinstance(value, str) and value.partition(".")[0] in names


def _makes_anew(call: CallFacts) -> bool:
    """Whether a call makes a tensor in pageable memory of a batch: `from_numpy(array)`, `x.float().to()`."""
    func = call.func
    if func == "torch.Tensor" or last_of(func) == "from_numpy":
        return True
    if not (isinstance(func, tuple) and func[0] == "attr" and MOVES.search(str(func[2]))):
        return False
    inner = func[1]
    return isinstance(inner, tuple) and inner[0] == "call" and last_of(inner[1]) in _CONVERSIONS
