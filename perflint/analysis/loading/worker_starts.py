"""How often the workers of a loader start, and whether that is known to show in a pass."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.loading.few_items import has_few_items
from perflint.analysis.loading.loaders import counted, option, purpose
from perflint.analysis.loading.passes import Run, is_hook, is_repeated, most_passes, runs, use
from perflint.analysis.loading.sample_cost import is_small, is_tiny, needs_workers
from perflint.analysis.naming.phases import FOR_EVALUATION, FOR_TRAINING
from perflint.finding import Heat
from perflint.ir.calls import is_constant, keyword

_SPAWNING = ("spawn", "forkserver")
#: As many workers take a third of a second to fork.
_MANY = 8
#: As many take a tenth of a second or more.
_SEVERAL = 4
#: Of so many passes all starts together take less than half a minute.
_FEW_PASSES = 50
#: So many starts of a few workers take a second of a whole run.
_HANDFUL = 10


def starts_show(call: ast.Call, ctx: FileFacts, *, samples: bool = False) -> bool:
    """Whether the loader is run through again and again, and the start of its workers is known to show in a pass, or
    there are many of them.
    """
    return has_short_passes(call, ctx, samples=samples) or (
        _are_many(call, ctx) and any(loop.again and not _is_seldom(loop, ctx) for loop in runs(call, ctx))
    )


def _is_seldom(loop: Run, ctx: FileFacts, few: int = _FEW_PASSES) -> bool:
    """Whether a whole run, however long, starts the workers a few times: half a second each."""
    passes = most_passes(loop, ctx)
    return passes is not None and passes <= few


def has_short_passes(call: ast.Call, ctx: FileFacts, *, samples: bool = False) -> bool:
    """Whether passes that are known to be short are repeated: workers are spawned, the data set is small, a batch is a
    sample of a graph, or the call serves whatever data set it is given, in training and in evaluation.
    """
    loops = runs(call, ctx)
    asked = is_hook(call, ctx, "train_dataloader", "val_dataloader")
    if is_hook(call, ctx, "test_dataloader", "predict_dataloader"):
        return False
    if not (any(loop.again for loop in loops) if loops else asked or is_repeated(call, ctx)):
        return False
    if spawns_workers(call, ctx):
        return True
    again = [loop for loop in loops if loop.again]
    if again and all(_is_seldom(loop, ctx, _HANDFUL) for loop in again):
        return False
    if samples and not asked:
        return True
    if (
        is_tiny(call, ctx)
        or has_few_items(call, ctx)
        or (is_small(call, ctx) and any(use(loop, ctx) == "look" for loop in loops))
    ):
        return True
    if _serves_both(call, ctx):
        return any(loop.again and use(loop, ctx) == "train" for loop in loops)
    serves_any = purpose(call, ctx) == "" and {use(loop, ctx) for loop in loops if loop.again} >= {"train", "look"}
    return serves_any and not _are_few(call, ctx)


def _are_few(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether no more than a few workers start, by all that ask for the loader: a tenth of a second of a pass of which
    nobody knows that it is short.
    """
    count = option(call, "num_workers", ctx)
    told = set() if count is None else counted(count, ctx)
    return bool(told) and all(isinstance(item, int) and item < _SEVERAL for item in told)


def _are_many(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether many workers start again, each of which makes a whole batch of costly samples before the first is there:
    half a second of each pass, which shows where the data set is of some thousand samples.
    """
    count = option(call, "num_workers", ctx)
    told = counted(count, ctx) if count is not None else set()
    return bool(told) and all(isinstance(item, int) and item >= _MANY for item in told) and needs_workers(call, ctx)


def _serves_both(call: ast.Call, ctx: FileFacts) -> bool:
    """`{phase: DataLoader(datasets[phase], ...) for phase in ("train", "val")}`, which one loop takes by turns."""
    table = ctx.tree.parent(call)
    if not isinstance(table, ast.DictComp) or not isinstance(table.generators[0].iter, (ast.List, ast.Tuple)):
        return False
    phases = [item.value for item in table.generators[0].iter.elts if isinstance(item, ast.Constant)]
    named = [str(phase) for phase in phases]
    return any(FOR_TRAINING.search(name) for name in named) and any(FOR_EVALUATION.search(name) for name in named)


def spawns_workers(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether workers start by spawn or forkserver, which imports everything anew in each of them."""
    wanted = keyword(call, "multiprocessing_context")
    if wanted is not None:
        return any(is_constant(wanted, word) for word in _SPAWNING)
    return ctx.program.whole.starts_anew(ctx.path, ("set_start_method",))


def is_made_each_epoch(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether the loader itself lasts for one epoch: made in a loop, run through where it is made, or made by a
    function that is told the epoch or that a loop over epochs calls. Other loops around a factory's calls (over models,
    over splits) build loaders that then live for many epochs.
    """
    if ctx.loops(call):
        return True
    # A table of loaders is made all at once.
    heat = ctx.heat(ctx.tree.statement_of(call) if isinstance(ctx.tree.parent(call), ast.DictComp) else call)
    if heat > Heat.EPOCH:
        return True
    if any(param.name == "epoch" for param in ctx.facts(call).params):
        return True
    if heat < Heat.EPOCH:
        return False
    scope = ctx.scope(call)
    if any(where == scope and loop.heat >= Heat.STEP for (where, _), loop in ctx.program.roots.loops.items()):
        return True
    _, route, _ = ctx.heat_and_route(call)
    return any("epoch" in hop.text.lower() for hop in route)
