"""TPL105: loaders that are begun or built again on every turn of a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Heat, Impact, Rule, is_constant
from perflint.api.loading import (
    begins_often,
    begun_by_next,
    confidence_by_use,
    is_plain_loader,
    loader_confidence,
    option,
    runs_on_some_turns,
    stays_the_same,
)
from perflint.api.loops import is_timing, starts_afresh


class LoaderRebuiltInLoop(Rule):
    """A DataLoader that is restarted for each batch starts its workers, fills their queues and discards the result.

    What it does

    Reports `next(iter(loader))` in a loop, and a `DataLoader(...)` that is built in a loop from arguments that never
    change.

    Why is this slow?

    `iter(loader)` starts the workers and requests batches from each of them. `next(iter(loader))` takes one batch and
    discards the others. Without workers it only restarts the sampler.

    What to do

    Create `batches = iter(loader)` before the loop, call `next(batches)` in it, and create it again on
    `StopIteration`. Or iterate over `zip(range(steps), loader)` or `itertools.islice(loader, steps)`. Build a loader
    whose arguments never change before the loop.

    Fix safety

    No fix: a kept iterator ends (`StopIteration`), and returns successive batches where `next(iter(loader))` returns
    independent draws, or the same first batch if nothing shuffles.

    Not reported

    - One batch to inspect, outside loops.
    - Training on one fixed batch to debug.
    - Loaders that are rebuilt because their dataset or sampler changes (folds, a curriculum).
    - Loaders without workers that are built once per epoch.

    Measured

    With two workers, `next(iter(loader))` took 66 ms per batch; `next` of a kept iterator took 0.9 ms (72 times
    less).

    References

    - torch.utils.data.DataLoader: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader
    """

    code, name = "TPL105", "loader-rebuilt-in-loop"
    impact = Impact.HIGH
    listens = (Calls("next", "DataLoader"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if isinstance(node.func, ast.Name) and node.func.id == "next":
            yield from self._begun_again(node, ctx)
        else:
            yield from self._built_again(node, ctx)

    def _begun_again(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        source = begun_by_next(node)
        if source is None:
            return
        loop = next(iter(ctx.loops(node)), None)
        if not begins_often(node, source, loop, ctx):
            return
        confidence = loader_confidence(source, ctx) or confidence_by_use(node, source, ctx)
        if confidence is None:
            return
        often = ctx.heat(node).phrase if loop is None else "runs in every iteration"
        text = ctx.text(source)
        # Without workers nothing has been prefetched: what is paid again is a new order of the samples.
        alone = ctx.program.whole.loads_without_workers
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` {often}: it restarts the loader"
            + ("." if alone else " and discards all prefetched batches."),
            advice=f"Keep one iterator, `batches = iter({text})`, call `next(batches)`, and restart it at its end.",
            confidence=confidence,
            impact=Impact.LOW if alone else Impact.HIGH if ctx.mentions("num_workers") else Impact.MEDIUM,
        )

    def _built_again(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        loop = next(iter(ctx.loops(node)), None)
        if loop is None or not is_plain_loader(node, ctx) or starts_afresh(loop) or is_timing(loop):
            return
        if runs_on_some_turns(node, loop, ctx) or not stays_the_same(node, loop, ctx):
            return
        staffed = option(node, "num_workers", ctx)
        idle = staffed is None or is_constant(staffed, 0)
        if idle and ctx.heat(node) < Heat.STEP:
            return  # an object, and nobody who has to be started
        yield self.finding(
            node,
            ctx,
            "Every iteration builds this loader again from arguments that do not change"
            + ("." if idle else ", and starts its workers again."),
            advice="Build it before the loop"
            + ("." if idle else ", with `persistent_workers=True` if it is iterated more than once."),
            impact=Impact.LOW if idle else Impact.HIGH,
            confidence=Confidence.MEDIUM,
        )
