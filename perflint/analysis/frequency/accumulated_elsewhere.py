"""Backward passes and the optimizer's step that comes once for several of them, with a call between the two."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.accumulation import is_of_optimizer, optimizer_steps
from perflint.analysis.names.refs import Scope
from perflint.analysis.values.kind import Tag
from perflint.finding import Hop
from perflint.ir.calls import callee_name
from perflint.syntax.tree import FUNCTIONS
from perflint.syntax.walk import walk
from perflint.torch_model.effects import Effect


def gathered_before(step: ast.Call, ctx: FileFacts) -> ast.Call | None:
    """The call that walks back in each turn of a loop before an optimizer's step, in a function of the project that
    takes no step itself: `for sample in samples: self.task.train_step(sample)`.
    """
    function = ctx.tree.function_of(step)
    if function is None or not is_of_optimizer(step, ctx):
        return None
    for part in ctx.once(_calls_by_outer_loops, function).get(tuple(map(id, ctx.loops(step))), ()):
        if part.lineno >= step.lineno or not _gathers(ctx.loops(part)[0], ctx):
            continue
        done = ctx.effects(part)
        if done.does(Effect.BACKWARD) and not done.does(Effect.STEPS):
            return part
    return None


def _calls_by_outer_loops(function: ast.AST, ctx: FileFacts) -> dict[tuple[int, ...], list[ast.Call]]:
    """The calls in loops of a function, by the loops around their own one: each step asks for those beside it."""
    found: dict[tuple[int, ...], list[ast.Call]] = {}
    for part in ctx.walk(function):
        if isinstance(part, ast.Call) and callee_name(part) != "backward" and (loops := ctx.loops(part)):
            found.setdefault(tuple(map(id, loops[1:])), []).append(part)
    return found


def step_of_caller(node: ast.Call, ctx: FileFacts) -> Hop | None:
    """The optimizer's step that a caller takes once a function has walked back in each turn of a loop of its own."""
    loops, function = ctx.loops(node), ctx.tree.function_of(node)
    if function is None or len(loops) != 1 or not _gathers(loops[0], ctx) or ctx.once(optimizer_steps, function):
        return None
    for step, there in _steps_behind(ctx.scope(node), ctx):
        return there.hop(step, "the optimizer step of these backward passes")
    return None


def _steps_behind(scope: Scope, ctx: FileFacts) -> Iterator[tuple[ast.Call, FileFacts]]:
    """The optimizers' steps behind the calls of a function, in those who call it."""
    for edge in ctx.program.callers(scope):
        there = ctx.at(edge.caller.path) if edge.index >= 0 else None
        if there is None:
            continue
        line = ctx.program.function(edge.caller).line
        function = next(
            (part for part in walk(there.tree.module) if isinstance(part, FUNCTIONS) and part.lineno == line), None
        )
        for steps in there.once(optimizer_steps, function).values() if function is not None else ():
            yield from ((step, there) for step in steps if step.lineno > edge.line)


def _gathers(loop: ast.AST, ctx: FileFacts) -> bool:
    """Whether the turns of a loop may add up gradients of one model: each has no model of its own, and none clears
    what is there.
    """
    if not isinstance(loop, ast.For):
        return False
    targets = [part for part in ctx.walk(loop.target) if isinstance(part, ast.Name)]
    if any(ctx.kind(part).tag is Tag.MODULE for part in targets):
        return False
    return not any(
        isinstance(part, ast.Call) and callee_name(part) == "zero_grad" and not _is_given_up(part, loop, ctx)
        for part in ctx.walk(loop)
    )


def _is_given_up(call: ast.Call, loop: ast.For, ctx: FileFacts) -> bool:
    """Whether gradients are cleared where an error ends the turn."""
    for outer in ctx.tree.ancestors(call):
        if outer is loop:
            return False
        if isinstance(outer, ast.ExceptHandler):
            return True
    return False
