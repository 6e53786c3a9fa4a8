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
    Tag,
    is_constant,
    keyword,
    walk,
)
from perflint.api.loading import is_plain_loader, option
from perflint.api.loops import is_timing, starts_afresh

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
#: Inputs and targets.
_PAIR = 2


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
        loop = _loop_around(node, ctx)
        if not _runs_often(node, source, loop, ctx):
            return
        confidence = _loader_confidence(source, ctx) or _confidence_by_use(node, source, ctx)
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
        loop = _loop_around(node, ctx)
        if loop is None or not is_plain_loader(node, ctx) or starts_afresh(loop) or is_timing(loop):
            return
        if _is_conditional(node, loop, ctx) or not _stays_the_same(node, loop, ctx):
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


def _loader_confidence(source: ast.expr, ctx: Context) -> Confidence | None:
    """How sure it is that `source` is a loader, None when it is something else."""
    kind = ctx.kind(source)
    if kind.tag is Tag.LOADER:
        return min(kind.certainty, Confidence.HIGH)
    if any(ctx.program.is_loader(ref) for ref in ctx.refs(source)):
        return Confidence.HIGH
    if kind.known or not isinstance(source, (ast.Name, ast.Attribute)) or ctx.refs(source):
        return None
    return Confidence.MEDIUM if ctx.program.looks_like_loader(ctx.text(source)) else None


def _confidence_by_use(node: ast.Call, source: ast.expr, ctx: Context) -> Confidence | None:
    """How sure it is that something unknown is a loader because parts of what it gives are moved to a device."""
    statement = ctx.tree.statement_of(node)
    if ctx.kind(source).known or not isinstance(statement, ast.Assign) or statement.value is not node:
        return None
    target = statement.targets[0]
    parts = [item.id for item in getattr(target, "elts", []) if isinstance(item, ast.Name)]
    function = ctx.tree.function_of(node)
    if len(parts) < _PAIR or function is None:
        return None
    moved = {
        part.func.value.id
        for part in walk(function)
        if isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in ("to", "cuda")
        and isinstance(part.func.value, ast.Name)
        and part.lineno >= statement.lineno
    }
    return Confidence.MEDIUM if moved.issuperset(parts) else None


def _loop_around(node: ast.AST, ctx: Context) -> ast.For | ast.AsyncFor | ast.While | None:
    """The innermost loop statement whose body (not its header) runs `node`."""
    child = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            return None
        if isinstance(outer, _LOOPS) and child in outer.body:
            return outer
        child = outer
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


def _stays_the_same(node: ast.Call, loop: ast.stmt, ctx: Context) -> bool:
    """Whether the loop changes nothing that the loader is built from. A dataset that is used otherwise in the loop may
    be changed there.
    """
    flow = ctx.inference.flow
    given = [*node.args, *(item.value for item in node.keywords)]
    if not all(flow.is_invariant(item, loop, pure=lambda call: _is_plain(call, ctx)) for item in given):
        return False
    names = {part.id for item in given for part in walk(item) if isinstance(part, ast.Name)}
    dataset = option(node, "dataset", ctx)
    if not isinstance(dataset, (ast.Name, ast.Attribute)) or keyword(node, "generator") is not None:
        return False
    inside = {id(part) for part in walk(node)}
    text = ctx.text(dataset)
    return bool(names) and not any(
        isinstance(part, (ast.Name, ast.Attribute)) and id(part) not in inside and ctx.text(part) == text
        for part in walk(loop)
    )


def _is_plain(call: ast.Call, ctx: Context) -> bool:
    return ctx.is_call_of(call, "torch.cuda.is_available", "os.cpu_count", "len", "int")
