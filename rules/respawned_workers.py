"""TPL104: workers that end with each epoch and are started again for the next."""

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
    Heat,
    Impact,
    Nodes,
    Rule,
    keyword,
)
from perflint.api.loading import (
    SAMPLERS,
    bound_options,
    builds_data_loader,
    has_short_passes,
    hides_options,
    is_given_one_of,
    is_made_each_epoch,
    is_sampling_loader,
    is_zero,
    loader_with,
    option,
    purpose,
    spawns_workers,
    starts_show,
    workers,
)
from perflint.api.names import TOLD_THE_EPOCH

_NAMES = ("DataLoader", "loader_class", "loader_cls", "dataloader_class", "dataloader_cls", "data_loader_class")


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
    - Long epochs with fewer than eight forked workers, where the start-up time is negligible, and runs of few epochs
      (up to 50 of many workers, up to 10 of short epochs).
    - Programs that pass the epoch to the dataset, and loaders whose number of workers is 0 by default.

    Known limitations

    The start-up time is known to matter if workers are spawned, the dataset is tiny (MNIST, one picture) or small and
    used for evaluation (CIFAR), batches are samples of a graph, or one call builds training and evaluation loaders for
    any dataset. Persistent workers of a validation loader keep their memory during training.

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
        holder = ctx.tree.parent(count)
        if is_zero(count, ctx) or (isinstance(holder, ast.Dict) and any(self._options(holder, ctx))):
            return
        if is_made_each_epoch(node, ctx):
            yield from self._rebuilt(node, ctx)
        elif not _is_told_the_epoch(ctx) and starts_show(node, ctx, samples=samples):
            yield self._respawned(node, count, ctx)

    def _respawned(self, node: ast.Call, count: ast.expr, ctx: Context) -> Finding:
        literal = isinstance(count, ast.Constant)
        value = "True" if literal else ctx.edit.expression("{count} > 0", count=count)
        fix, chosen = None, is_given_one_of(node, ctx)
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
        loud, quiet = spawns_workers(node, ctx), purpose(node, ctx) == "eval" or not has_short_passes(node, ctx)
        return self.finding(
            node,
            ctx,
            "The workers of this loader stop after each epoch, and the next epoch waits until they have started again.",
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
        if ctx.heat(node) > Heat.PERIODIC or ctx.loops(node) or not (_is_kept(dataset) and _reorders(node)):
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
        name = bound_options(node, ctx)
        loader = None if name is None or ctx.loops(node) else loader_with(name, node, ctx)
        if loader is None or not starts_show(loader, ctx):
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
    return TOLD_THE_EPOCH.search(ctx.source.text) is not None


def _keeps_workers(call: ast.Call, ctx: Context) -> bool:
    """Whether a class of the project has a say of its own about persistent workers."""
    return any(ref.path and ctx.program.mentions({"persistent_workers"}, (ref.path,)) for ref in ctx.refs(call.func))


def _is_kept(dataset: ast.expr | None) -> bool:
    return isinstance(dataset, ast.Attribute) and isinstance(dataset.value, ast.Name) and dataset.value.id == "self"


def _reorders(call: ast.Call) -> bool:
    """Whether the order of the samples is all that differs from epoch to epoch."""
    return keyword(call, "batch_sampler") is not None or keyword(call, "sampler") is not None
