"""Backward passes of which several come before one step of the optimizer."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import CLASS, Ref
from perflint.finding import Heat
from perflint.ir import guards
from perflint.ir.calls import argument, callee_name, is_constant
from perflint.ir.notation import last_name
from perflint.torch_model.effects import Effect

#: Guards of an optimizer's step that comes once for several backward passes: every N of them, whatever N is called.
_GATHERED = frozenset({guards.ACCUMULATION, guards.PERIODIC})


def gathers_for(node: ast.Call, ctx: FileFacts) -> ast.Call | None:
    """The optimizer's step that comes once for several runs of this backward, in the same function: of a loop in it, or
    of the function as a whole, which a loop elsewhere calls for each micro-batch.
    """
    loops = ctx.loops(node)
    function = ctx.tree.function_of(node) or ctx.tree.module
    if _steps_itself(node, ctx) or (not loops and function is ctx.tree.module):
        return None
    steps = ctx.once(optimizer_steps, function)
    if not _GATHERED.intersection(ctx.guards(node)):
        for part in steps.get(id(loops[0]) if loops else None, ()):
            if _GATHERED.intersection(ctx.guards(part)):
                return part
    if ctx.heat(node) != Heat.MICROBATCH or not loops:
        return None
    outside = (steps.get(key) for key in (*map(id, loops[1:]), None))
    return next((found[0] for found in outside if found), None)


def optimizer_steps(function: ast.AST, ctx: FileFacts) -> dict[int | None, list[ast.Call]]:
    """The optimizers' steps in a function, by the id of the loop right around each."""
    found: dict[int | None, list[ast.Call]] = {}
    for part in ctx.walk(function):
        if isinstance(part, ast.Call) and callee_name(part) == "step" and is_of_optimizer(part, ctx):
            around = ctx.loops(part)
            found.setdefault(id(around[0]) if around else None, []).append(part)
    return found


def is_of_optimizer(step: ast.Call, ctx: FileFacts) -> bool:
    """Whether a step is an optimizer's, also of one whose class the project has written itself."""
    if ctx.effects(step).does(Effect.STEPS):
        return True
    made = ctx.refs(step.func.value) if isinstance(step.func, ast.Attribute) else ()
    bases = (ctx.program.resolver.base_names(Ref(CLASS, ref.path, ref.name)) for ref in made if ref.path)
    return any("torch.optim.Optimizer" in names for names in bases)


def _steps_itself(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a test decides about the backward and the step behind it at once: nothing is gathered there."""
    graph = ctx.control_flow(node)
    if not any(ctx.loops(test)[:1] == ctx.loops(node)[:1] for test, _ in graph.decided_by(node)):
        return False
    loops = ctx.loops(node)
    steps = ctx.once(optimizer_steps, ctx.tree.function_of(node) or ctx.tree.module)
    return any(graph.post_dominates(step, node) for step in steps.get(id(loops[0]) if loops else None, ()))


def clips_each_time(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether each micro-batch clips the gradients of all, not only those of the last: they have to be reduced then."""
    loops = ctx.loops(node)
    return any(
        isinstance(part, ast.Call)
        and "clip_grad" in callee_name(part)
        and ctx.loops(part) == loops
        and not _GATHERED.intersection(ctx.guards(part))
        for part in ctx.walk(loops[0] if loops else ctx.tree.function_of(node) or ctx.tree.module)
    )


def has_one_by_default(step: ast.AST, ctx: FileFacts) -> bool:
    """Whether the optimizer's step stands under a test of a number that is 1 unless somebody sets it."""
    parts = [part for test, _ in ctx.conditions(step) for part in ctx.walk(test)]
    options = [last_name(part) for part in parts if isinstance(part, ast.Attribute)]
    defaults = [ctx.program.whole.option_defaults(name, ctx.path) for name in options]
    asked = [part for part in parts if isinstance(part, ast.Call) and callee_name(part) == "get"]
    return any(set(found) == {1} for found in defaults) or any(
        is_constant(argument(part, 1, "default"), 1) for part in asked
    )
