"""Waits that are there for a clock: it is read right behind them, before anything else is queued."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.finding import Heat
from perflint.syntax.walk import walk
from perflint.torch_model.effects import Effect

_WORK = (Effect.LAUNCHES, Effect.FORWARD, Effect.BACKWARD, Effect.STEPS, Effect.COPIES)
_FURTHEST = 4


def reads_clock_behind(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a clock is read after a wait, before anything that runs on the device."""
    for statement in _following(ctx.tree.statement_of(node), ctx):
        calls = [part for part in ctx.walk(statement) if isinstance(part, ast.Call) and part is not node]
        if any(reads_clock(call, ctx) for call in calls):
            return True
        if any(ctx.effects(call).does(*_WORK) for call in calls):
            return False
    return False


def reads_clock(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call reads a clock, itself or in a function of the project that is there for it."""
    effects = ctx.effects(call)
    return effects.does(Effect.CLOCK) and not effects.does(*_WORK)


def _following(statement: ast.stmt, ctx: FileFacts) -> Iterator[ast.stmt]:
    """The statement itself and what runs next after it, a few statements on, out of blocks and round the loop."""
    yield statement
    left = _FURTHEST
    while left > 0:
        block = ctx.tree.block_of(statement)
        for item in block[block.index(statement) + 1 :]:
            left -= 1
            yield item
            if left == 0:
                return
        outer = ctx.tree.parent(statement)
        if isinstance(outer, (ast.For, ast.AsyncFor, ast.While)):
            yield outer.body[0]
            left -= 1
        if not isinstance(outer, (ast.If, ast.With, ast.AsyncWith, ast.Try, ast.For, ast.AsyncFor, ast.While)):
            return
        statement = outer


def is_measurement(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the function around `node` gives back the times that it takes, or does not train though it reads a clock:
    then the waits in it belong to what it measures.
    """
    function = ctx.tree.function_of(node)
    region = function or ctx.tree.module
    clocks = [part for part in ctx.walk(region) if isinstance(part, ast.Call) and _tells_time(part, ctx)]
    if not clocks:
        return False
    if function is not None and _returns_times(function, clocks, ctx):
        return True
    return not trains(node, ctx)


def trains(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the loop that makes `node` hot takes steps of an optimizer, or a framework does it for its function."""
    if ctx.role(node) != "train" or ctx.heat(node) < Heat.STEP:
        return False
    found = ctx.program.step_loop(ctx.scope(node), ctx.context(node))
    return found is None or ctx.program.effects(found[0]).does(Effect.STEPS)


def _tells_time(call: ast.Call, ctx: FileFacts) -> bool:
    return ctx.effects(call).witness(Effect.CLOCK) is not None


def _returns_times(function: ast.FunctionDef | ast.AsyncFunctionDef, clocks: list[ast.Call], ctx: FileFacts) -> bool:
    """Whether what comes back is made of differences of times, or of lists that they were put into, alone."""
    timed = _names_of_times(function, clocks, ctx)
    returned = [item.value for item in ctx.walk(function) if isinstance(item, ast.Return) and item.value is not None]
    names = [{part.id for part in walk(value) if isinstance(part, ast.Name)} for value in returned]
    return bool(names) and all(own & timed or _holds(value, clocks) for own, value in zip(names, returned))


def _names_of_times(function: ast.AST, clocks: list[ast.Call], ctx: FileFacts) -> set[str]:
    found: set[str] = set()
    for _ in range(3):
        for part in ctx.walk(function):
            if isinstance(part, (ast.Assign, ast.AugAssign)):
                if _holds(part.value, clocks) or _mentions(part.value, found):
                    targets = part.targets if isinstance(part, ast.Assign) else [part.target]
                    found.update(target.id for target in targets if isinstance(target, ast.Name))
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
                owner = part.func.value
                if isinstance(owner, ast.Name) and part.func.attr in ("append", "extend"):
                    if any(_holds(item, clocks) or _mentions(item, found) for item in part.args):
                        found.add(owner.id)
    return found


def _holds(value: ast.AST, calls: list[ast.Call]) -> bool:
    return any(part in calls for part in walk(value))


def _mentions(value: ast.AST, names: set[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in walk(value))
