"""Code that generates: a model runs there again and again, and what stands beside it hardly costs anything."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.few_turns import turns_few_times
from perflint.analysis.gradients.model_calls import is_model_call
from perflint.analysis.naming.phases import GENERATES, MAKES_SAMPLES, SERVER
from perflint.analysis.phases.loop_purpose import names_in
from perflint.analysis.waits.host_work import in_forward
from perflint.finding import Heat
from perflint.ir.callees import last_name as last_of
from perflint.ir.calls import callee_name
from perflint.ir.notation import last_name
from perflint.syntax.walk import walk
from perflint.torch_model.effects import Effect

_FEWEST_GIVEN = 3


def beside_generation(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the step around `node` generates, or asks a server: then it has waited at every token, or for the answer,
    and the device has nothing queued that a single copy could wait for.
    """
    loops = [loop for loop in ctx.loops(node) if ctx.body_heat(loop) >= Heat.STEP]
    around = loops[0] if loops else _whole_function(node, ctx)
    if _is_trained_forward(around):
        return False  # a recurrent network goes from step to step as well
    if around is not None and ctx.once(_generates_in, around):
        return True
    return ctx.role(node) in ("batches", "texts") and not in_forward(node, ctx) and _is_step_of_samples(node, ctx)


def _is_trained_forward(around: ast.AST | None) -> bool:
    """Whether this is the forward of a module itself, which is there to be trained, and no loop in it."""
    return isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)) and around.name == "forward"


def _generates_in(around: ast.AST, ctx: FileFacts) -> bool:
    return any(
        isinstance(part, ast.Call) and generates(part, ctx) and ctx.heat(part) >= Heat.STEP for part in walk(around)
    )


def _is_step_of_samples(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether each turn of the loop that leads here makes a whole sample, in many steps of its own."""
    found = ctx.program.step_loop(ctx.scope(node), ctx.context(node))
    if found is None:
        return False
    scope, loop = found
    facts = ctx.program.function(scope)
    known = {edge.index for edge in ctx.program.graph.outgoing.get(scope, ())}
    return any(
        loop in facts.loops_around(call.context)
        and (
            ctx.program.call_effects(scope, index).does(Effect.GENERATES)
            if index in known
            else len(call.args) + len(call.keywords) >= _FEWEST_GIVEN and MAKES_SAMPLES.search(last_of(call.func))
        )
        for index, call in enumerate(facts.calls)
    )


def leads_to_a_search(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether `node` stands before a loop of its function that runs a model in each of many turns, and none of it is
    trained: what it costs once, each turn costs many times.
    """
    function = ctx.tree.function_of(node)
    if (
        function is None
        or ctx.loops(node)
        or _is_trained_forward(function)
        or ctx.program.is_in_training(ctx.scope(node))
    ):
        return False
    return any(
        isinstance(item, (ast.For, ast.While)) and ctx.once(_runs_model, item) for item in _after(node, function)
    )


def _after(node: ast.AST, function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.stmt]:
    return [item for item in function.body if item.lineno > node.lineno]  # type: ignore[attr-defined]


def _runs_model(loop: ast.For | ast.While, ctx: FileFacts) -> bool:
    own = set(names_in(loop.target)) if isinstance(loop, ast.For) else set()
    return not turns_few_times(loop, ctx) and any(
        isinstance(part, ast.Call)
        and is_model_call(part, ctx)
        and own.isdisjoint(names_in(part.func))  # not `for layer in layers: x = layer(x)`
        for statement in loop.body
        for part in ctx.walk(statement)
    )


def generates(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call makes something token by token, or asks a server for it: a function of the project by what it
    does, anything else by its name.
    """
    index = ctx.call_index(call)
    if index is not None and any(edge.index == index for edge in ctx.program.graph.outgoing.get(ctx.scope(call), ())):
        if not ctx.program.whole.may_generate:
            return False
        effects = ctx.effects(call)
        by_name = GENERATES.search(callee_name(call)) is not None
        return effects.surely(Effect.GENERATES) or (by_name and effects.does(Effect.GENERATES))
    if GENERATES.search(callee_name(call)):
        return True
    return isinstance(call.func, ast.Attribute) and bool(SERVER.search(last_name(call.func.value)))


def generates_or_predicts(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the function around `node` generates, or runs a model, however often it is called."""
    function = _whole_function(node, ctx)
    return function is not None and any(
        isinstance(part, ast.Call)
        and (generates(part, ctx) or callee_name(part).startswith("predict") or is_model_call(part, ctx))
        for part in walk(function)
    )


def _whole_function(node: ast.AST, ctx: FileFacts) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The outermost function around `node`."""
    function = ctx.tree.function_of(node)
    while function is not None and (outer := ctx.tree.function_of(ctx.tree.parent(function) or function)) is not None:
        function = outer
    return function
