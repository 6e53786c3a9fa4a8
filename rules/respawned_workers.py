"""TPL104: workers that end with each epoch and are started again for the next."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Confidence,
    Context,
    Finding,
    Fix,
    Heat,
    Impact,
    Nodes,
    Rule,
    is_constant,
    keyword,
    pattern,
    walk,
)
from perflint.api.loading import (
    SAMPLERS,
    builds_data_loader,
    counted,
    hides_options,
    is_hook,
    is_repeated,
    is_sampling_loader,
    is_small,
    is_tiny,
    is_zero,
    needs_workers,
    option,
    purpose,
    runs,
    use,
    workers,
)
from perflint.api.names import FOR_EVALUATION

_NAMES = ("DataLoader", "loader_class", "loader_cls", "dataloader_class", "dataloader_cls", "data_loader_class")
_TELLS = pattern(r"(?:dataset|_ds|_set|trainset)\.(?:set_epoch\(|\w*epoch\w*\s*=[^=])")
_TRAINS = pattern(r"^(?:train|trn)", re.IGNORECASE)
_SPAWNING = ("spawn", "forkserver")
#: As many workers take a third of a second to fork.
_MANY = 8


class RespawnedWorkers(Rule):
    """Without `persistent_workers`, every epoch stops and restarts all DataLoader workers.

    What it does

    Reports loaders with workers and without `persistent_workers=True` that are iterated several times, where the
    start-up time is known to matter.

    Why is this slow?

    Every `iter(loader)` starts the workers one by one and sends them the dataset, while the device is idle: about 40
    ms for a forked worker, a second or more for a spawned one.

    What to do

    Pass `persistent_workers=True`. If the number of workers varies, pass `persistent_workers=num_workers > 0`,
    because `True` with 0 workers raises an error. If the loader is rebuilt on each epoch, keep it and call
    `sampler.set_epoch(epoch)`.

    Fix safety

    Unsafe. Changes to the dataset between epochs (`dataset.set_epoch`) no longer reach the workers. The shuffle order
    changes from the second epoch on. Starting an iteration while another is active (nested loops,
    `next(iter(loader))`) breaks. Changes training.

    Not reported

    - Loaders that are iterated once, or over an endless sampler.
    - Long epochs with fewer than eight forked workers, where the start-up time is negligible.
    - Programs that pass the epoch to the dataset, and loaders whose number of workers is 0 by default.

    Known limitations

    The start-up time is known to matter if workers are spawned, the dataset is tiny (MNIST) or small and used for
    evaluation (CIFAR), batches are samples of a graph, or one call builds training and evaluation loaders for any
    dataset. Persistent workers of a validation loader keep their memory during training.

    Measured

    Two workers, a trivial dataset, 8 batches: 75 ms with restarted and 6.3 ms with persistent forked workers (12
    times); 2.7 s against 11 ms with forkserver, the default on Linux from Python 3.14; 3.8 s against 7.3 ms with
    spawned workers (macOS, Windows).

    References

    - torch.utils.data.DataLoader: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader
    """

    code, name = "TPL104", "respawned-workers"
    impact = Impact.MEDIUM
    listens = (Calls(*_NAMES, *SAMPLERS), Nodes(ast.Dict, mentioning=("DataLoader",)))

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if isinstance(node, ast.Dict):
            yield from self._options(node, ctx)
            return
        assert isinstance(node, ast.Call)
        if (
            hides_options(node, ctx)
            or option(node, "persistent_workers", ctx) is not None
            or workers(node, ctx) == "none"
        ):
            return
        samples = is_sampling_loader(node, ctx)
        if not samples and (not builds_data_loader(node, ctx) or _keeps_workers(node, ctx)):
            return
        count = option(node, "num_workers", ctx)
        assert count is not None
        if is_zero(count, ctx):
            return
        if _is_made_each_epoch(node, ctx):
            yield from self._rebuilt(node, ctx)
        elif not _is_told_the_epoch(ctx) and _is_worth_keeping(node, ctx, samples=samples):
            yield self._respawned(node, count, ctx)

    def _respawned(self, node: ast.Call, count: ast.expr, ctx: Context) -> Finding:
        literal = isinstance(count, ast.Constant)
        value = "True" if literal else ctx.edit.expression("{count} > 0", count=count)
        fix, chosen = None, _is_chosen(node, ctx)
        if (literal or isinstance(count, (ast.Name, ast.Attribute))) and not chosen:
            fix = Fix(
                "Keep the workers alive between epochs",
                Applicability.UNSAFE,
                (ctx.edit.set_keyword(node, "persistent_workers", value),),
                reason=(
                    "changes to the dataset between epochs no longer reach the workers, and the shuffle order "
                    "changes from the second epoch on"
                ),
                numerics="changes training",
            )
        loud, quiet = _spawns(node, ctx), purpose(node, ctx) == "eval" or not _is_short(node, ctx)
        return self.finding(
            node,
            ctx,
            (
                "The workers of this loader stop after each epoch, and the next epoch waits until they have started "
                "again."
            ),
            advice=f'Add `"persistent_workers": {value}` to the options.'
            if chosen
            else f"Pass `persistent_workers={' '.join(value.split())}`.",
            fix=fix,
            impact=Impact.HIGH if loud else Impact.LOW if quiet else Impact.MEDIUM,
            confidence=Confidence.HIGH if literal else Confidence.MEDIUM,
        )

    def _rebuilt(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        """A loader that is built for each epoch around a dataset that stays, with its workers."""
        dataset = option(node, "dataset", ctx)
        if ctx.heat(node) > Heat.EPOCH or ctx.loops(node) or not (_is_kept(dataset) and _reorders(node)):
            return
        yield self.finding(
            node,
            ctx,
            "This loader is rebuilt for every epoch, which starts its workers again.",
            advice=(
                f"Keep one loader of `{ctx.text(dataset) if dataset else ''}` with `persistent_workers=True`, "
                "and call `set_epoch` of its sampler."
            ),
            confidence=Confidence.MEDIUM,
        )

    def _options(self, node: ast.Dict, ctx: Context) -> Iterator[Finding]:
        """`kwargs = {"num_workers": 4, ...}` of a loader that is built with `**kwargs`."""
        given = {key.value: item for key, item in zip(node.keys, node.values) if isinstance(key, ast.Constant)}
        count = given.get("num_workers")
        if count is None or "persistent_workers" in ctx.source.text:
            return
        if not (isinstance(count, ast.Constant) and isinstance(count.value, int) and count.value > 0):
            return
        name = _bound_name(node, ctx)
        loader = None if name is None or ctx.loops(node) else _loader_with(name, node, ctx)
        if loader is None or not _is_worth_keeping(loader, ctx):
            return
        yield self.finding(
            node,
            ctx,
            f"Loaders built with `**{name}` stop their workers after each epoch, and the next epoch waits until "
            "they have started again.",
            advice='Add `"persistent_workers": True`.',
            confidence=Confidence.MEDIUM,
        )


def _is_told_the_epoch(ctx: Context) -> bool:
    """Whether a data set is changed from epoch to epoch, which workers that stay would not hear of."""
    return _TELLS.search(ctx.source.text) is not None


def _keeps_workers(call: ast.Call, ctx: Context) -> bool:
    """Whether a class of the project has a say of its own about persistent workers."""
    return any(ref.path and ctx.program.mentions({"persistent_workers"}, (ref.path,)) for ref in ctx.refs(call.func))


def _is_worth_keeping(call: ast.Call, ctx: Context, *, samples: bool = False) -> bool:
    """Whether the loader is run through again and again, and the start of its workers is known to show in a pass, or
    there are many of them.
    """
    return _is_short(call, ctx, samples=samples) or (
        _are_many(call, ctx) and any(loop.again for loop in runs(call, ctx))
    )


def _is_short(call: ast.Call, ctx: Context, *, samples: bool = False) -> bool:
    """Whether passes that are known to be short are repeated: workers are spawned, the data set is small, a batch is a
    sample of a graph, or the call serves whatever data set it is given, in training and in evaluation.
    """
    loops = runs(call, ctx)
    asked = is_hook(call, ctx, "train_dataloader", "val_dataloader")
    if is_hook(call, ctx, "test_dataloader", "predict_dataloader"):
        return False
    if not (any(loop.again for loop in loops) if loops else asked or is_repeated(call, ctx)):
        return False
    if (samples and not asked) or _spawns(call, ctx):
        return True
    if is_tiny(call, ctx) or (is_small(call, ctx) and any(use(loop, ctx) == "look" for loop in loops)):
        return True
    if _serves_both(call, ctx):
        return any(loop.again and use(loop, ctx) == "train" for loop in loops)
    return purpose(call, ctx) == "" and {use(loop, ctx) for loop in loops if loop.again} >= {"train", "look"}


def _are_many(call: ast.Call, ctx: Context) -> bool:
    """Whether many workers start again, each of which makes a whole batch of costly samples before the first is there:
    half a second of each pass, which shows where the data set is of some thousand samples.
    """
    count = option(call, "num_workers", ctx)
    told = counted(count, ctx) if count is not None else set()
    return bool(told) and all(isinstance(item, int) and item >= _MANY for item in told) and needs_workers(call, ctx)


def _serves_both(call: ast.Call, ctx: Context) -> bool:
    """`{phase: DataLoader(datasets[phase], ...) for phase in ("train", "val")}`, which one loop takes by turns."""
    table = ctx.tree.parent(call)
    if not isinstance(table, ast.DictComp) or not isinstance(table.generators[0].iter, (ast.List, ast.Tuple)):
        return False
    phases = [item.value for item in table.generators[0].iter.elts if isinstance(item, ast.Constant)]
    named = [str(phase) for phase in phases]
    return any(_TRAINS.search(name) for name in named) and any(FOR_EVALUATION.search(name) for name in named)


def _spawns(call: ast.Call, ctx: Context) -> bool:
    """Whether workers start by spawn or forkserver, which imports everything anew in each of them."""
    wanted = keyword(call, "multiprocessing_context")
    if wanted is not None:
        return any(is_constant(wanted, word) for word in _SPAWNING)
    return ctx.program.whole.starts_anew(ctx.path, ("set_start_method",))


def _is_made_each_epoch(call: ast.Call, ctx: Context) -> bool:
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


def _is_chosen(call: ast.Call, ctx: Context) -> bool:
    """Whether a call is given its workers by one of two dicts: without workers the option raises."""
    spread = (item.value for item in call.keywords if item.arg is None)
    return any(isinstance(origin, ast.IfExp) for item in spread for origin in ctx.inference.origins(item))


def _is_kept(dataset: ast.expr | None) -> bool:
    return isinstance(dataset, ast.Attribute) and isinstance(dataset.value, ast.Name) and dataset.value.id == "self"


def _reorders(call: ast.Call) -> bool:
    """Whether the order of the samples is all that differs from epoch to epoch."""
    return keyword(call, "batch_sampler") is not None or keyword(call, "sampler") is not None


def _bound_name(node: ast.Dict, ctx: Context) -> str | None:
    """The name a dict is bound to, directly or as one arm of a conditional expression."""
    parent = ctx.tree.parent(node)
    if isinstance(parent, ast.IfExp):
        parent = ctx.tree.parent(parent)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
        return parent.targets[0].id
    return None


def _loader_with(name: str, node: ast.Dict, ctx: Context) -> ast.Call | None:
    """A loader of the same scope that is built with the options in `name`, or in a dict that takes them over."""
    names = {name}
    calls = [part for part in walk(ctx.tree.scope_of(node)) if isinstance(part, ast.Call)]
    for call in calls:
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr == "update" and isinstance(func.value, ast.Name):
            if any(isinstance(item, ast.Name) and item.id == name for item in call.args):
                names.add(func.value.id)
    for call in calls:
        passed = {item.value.id for item in call.keywords if item.arg is None and isinstance(item.value, ast.Name)}
        if names.isdisjoint(passed):
            continue
        if builds_data_loader(call, ctx) and keyword(call, "persistent_workers") is None:
            return call
    return None
