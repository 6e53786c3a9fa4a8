"""TPL105: loaders that are begun or built again on every turn of a loop."""

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
    Rule,
    is_constant,
)
from perflint.api.loading import confidence_by_use, is_plain_loader, loader_confidence, option, stays_the_same
from perflint.api.loops import is_timing, starts_afresh

_LOOPS = (ast.For, ast.AsyncFor, ast.While)


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
        source = _begun(node)
        if source is None:
            return
        loop = next(iter(ctx.loops(node)), None)
        if not _runs_often(node, source, loop, ctx):
            return
        confidence = loader_confidence(source, ctx) or confidence_by_use(node, source, ctx)
        if confidence is None:
            return
        often = ctx.heat(node).phrase if loop is None else "runs in every iteration"
        text = ctx.text(source)
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` {often}: it restarts the loader and discards all prefetched batches.",
            advice=f"Keep one iterator, `batches = iter({text})`, call `next(batches)`, and restart it at its end.",
            confidence=confidence,
            impact=Impact.HIGH if ctx.mentions("num_workers") else Impact.MEDIUM,
        )

    def _built_again(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        loop = next(iter(ctx.loops(node)), None)
        if loop is None or not is_plain_loader(node, ctx) or starts_afresh(loop) or is_timing(loop):
            return
        if _is_conditional(node, loop, ctx) or not stays_the_same(node, loop, ctx):
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


def _begun(node: ast.Call) -> ast.expr | None:
    """The loader in `next(iter(loader))`."""
    if len(node.args) != 1 or node.keywords or not isinstance(node.args[0], ast.Call):
        return None
    inner = node.args[0]
    if isinstance(inner.func, ast.Name) and inner.func.id == "iter" and len(inner.args) == 1 and not inner.keywords:
        return inner.args[0]
    if isinstance(inner.func, ast.Attribute) and inner.func.attr == "__iter__" and not inner.args:
        return inner.func.value
    return None


def _runs_often(node: ast.Call, source: ast.expr, loop: ast.stmt | None, ctx: Context) -> bool:
    if loop is None:
        # A helper that is called every step; a loader made in the helper itself is another matter.
        return ctx.heat(node) >= Heat.STEP and (isinstance(source, ast.Attribute) or _is_parameter(source, ctx))
    if is_timing(loop) or not ctx.inference.flow.is_invariant(source, loop):
        return False
    return not _is_conditional(node, loop, ctx)


def _is_parameter(source: ast.expr, ctx: Context) -> bool:
    function = ctx.tree.function_of(source)
    if function is None or not isinstance(source, ast.Name):
        return False
    arguments = function.args
    return any(item.arg == source.id for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def _is_conditional(node: ast.AST, loop: ast.stmt, ctx: Context) -> bool:
    """Whether `node` runs on some turns only, or the loop ends with its first one."""
    if any(loop in ctx.loops(test) for test, _ in ctx.conditions(node)):
        return True
    assert isinstance(loop, _LOOPS)
    return any(isinstance(statement, (ast.Break, ast.Return)) for statement in loop.body)
