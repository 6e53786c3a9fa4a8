"""Loops that run a model without training it: in a function that trains, and in code that only evaluates."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterator
from typing import TypeAlias

from perflint.analysis.evidence import BACKWARD_CALLS
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.evaluation_helpers import run_by_helper, run_for
from perflint.analysis.gradients.forwards import arguments_by_name
from perflint.analysis.gradients.method_forwards import model_name, names_of_models, runs_model, runs_part
from perflint.analysis.gradients.mode_switches import evaluated, evaluated_by
from perflint.analysis.gradients.model_calls import (
    asks_for_gradients,
    asks_in,
    may_differentiate,
    name_of_whole,
)
from perflint.analysis.names.refs import FUNCTION, Scope
from perflint.analysis.naming.phases import EVALUATES, PREDICTS
from perflint.finding import Heat
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
#: The torch since which inputs that are marked as volatile record a graph as others do.
_WITHOUT_VOLATILE = (0, 4)
_OFF = frozenset({"no_grad", "inference_mode"})
_MODES = BACKWARD_CALLS | {"eval"}
#: Roles of loops that go through batches, or run a model on its own output, and take no step.
_PASSES = frozenset({"batches", "eval", "decode"})


def tells_of_modes(function: _Function, ctx: FileFacts) -> bool:
    """Whether code trains or puts something into evaluation mode at all."""
    words = ctx.summary.functions[ctx.own_scope(function).function].identifiers
    if words and _MODES.isdisjoint(words.split()):
        return False
    return any(type(part) is ast.Call and callee_name(part) in _MODES for part in ctx.body(function))


def is_volatile(ctx: FileFacts) -> bool:
    """`Variable(x, volatile=True)`, where the project is for a torch that has no other way to switch gradients off.
    Since 0.4 it does nothing, and a program that uses what 0.4 brought runs with no torch before it, whatever is
    written down as required; a file that uses both may be for either.
    """
    if (ctx.torch_version or _WITHOUT_VOLATILE) >= _WITHOUT_VOLATILE:
        return False
    return (ctx.mentions("no_grad") or not ctx.program.mentions(("no_grad",))) and any(
        isinstance(part, ast.keyword) and part.arg == "volatile" for part in walk(ctx.tree.module)
    )


def walks_back(function: _Function, ctx: FileFacts) -> bool:
    """Whether a function trains or takes gradients of what it computes, itself or in what it calls."""
    scope = ctx.own_scope(function)
    return ctx.program.trains(scope) or ctx.program.whole.differentiates_in(scope)


def script_parts(ctx: FileFacts) -> list[ast.AST]:
    """All that stands in a file outside of its functions and classes."""
    return [part for statement in ctx.tree.module.body for part in ctx.walk(statement)]


def evaluating_forwards(function: _Function | ast.Module, ctx: FileFacts) -> Iterator[ast.Call]:
    """The first forward with gradients of each loop that evaluates what the function or script trains, but for models
    that may need gradients to give anything.
    """
    return (call for call in ctx.once(_evaluated_beside, function) if not may_differentiate(call, ctx))


def _evaluated_beside(function: _Function | ast.Module, ctx: FileFacts) -> list[ast.Call]:
    return list(_forwards_beside(function, ctx))


def _forwards_beside(function: _Function | ast.Module, ctx: FileFacts) -> Iterator[ast.Call]:
    if isinstance(function, ast.Module):
        trains = bool(_backwards(script_parts(ctx)))
    else:
        trains = bool(_backwards(ctx.body(function))) or ctx.program.trains(ctx.own_scope(function))
    if not trains:
        return
    nested = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    body = [statement for statement in function.body if not isinstance(statement, nested)]
    parts = [part for statement in body for part in ctx.walk(statement)]
    backwards = _backwards(parts) or _calls_that_train(parts, ctx)
    if not backwards:
        return
    handed = _handed_to_training(backwards, ctx)
    trained = _run_in_training(backwards, ctx) | handed | _given_to_training(backwards)
    for loop in parts:
        if not isinstance(loop, (ast.For, ast.AsyncFor, ast.While)) or _trains(loop, backwards):
            continue
        if any(not _trains(outer, backwards) for outer in ctx.loops(loop)):
            continue  # judged with the loop around it
        if not (_follows_eval(loop, ctx) or _ends_training(loop, backwards, ctx)) or asks_for_gradients(loop):
            continue
        if not any(_is_walked_back(loop, call, ctx) for call in backwards):
            yield from _first_forward(loop, trained, handed, ctx)
    yield from _after_the_step(parts, backwards, ctx)


def _after_the_step(parts: list[ast.AST], backwards: list[ast.Call], ctx: FileFacts) -> Iterator[ast.Call]:
    """A forward of all data behind `model.eval()`, below every backward, of a model that ran above them: training on
    one graph looks at the nodes that are held out so.
    """
    first, last = min(call.lineno for call in backwards), max(call.lineno for call in backwards)
    forwards = [part for part in parts if isinstance(part, ast.Call) and runs_model(part, ctx)]
    trained = {model_name(part, ctx) for part in forwards if part.lineno < first}
    for part in forwards:
        if part.lineno <= last or model_name(part, ctx) not in trained or ctx.grad_off(part):
            continue
        statement = ctx.tree.statement_of(part)
        inner = [loop for loop in ctx.loops(part) if not _trains(loop, backwards)]
        if inner or ctx.heat(part) < Heat.EPOCH or not isinstance(statement, ast.Assign):
            continue
        if asks_for_gradients(statement) or _trains_later(statement, parts, last, ctx):
            continue
        if _follows_eval(statement, ctx) and not any(_is_walked_back(statement, call, ctx) for call in backwards):
            yield part
            return


def _trains_later(statement: ast.Assign, parts: list[ast.AST], last: int, ctx: FileFacts) -> bool:
    """Whether a result may be walked back through in the next turn, as `targets = model(x)` is that the next loss is
    taken to, or by a function that it is given to; what is kept in an object may be used anywhere.
    """
    if not all(isinstance(part, (ast.Name, ast.Tuple)) for target in statement.targets for part in walk(target)):
        return True
    for part in parts:
        is_read = isinstance(part, ast.Name) and part.lineno <= last
        if is_read or (isinstance(part, ast.Call) and part.lineno > last and _calls_what_trains(part, ctx)):
            if any(_is_result(name, statement, ctx) for name in walk(part)):
                return True
    return False


def _calls_what_trains(call: ast.Call, ctx: FileFacts) -> bool:
    target = ctx.project_target(call.func)
    return target is not None and target.kind == FUNCTION and ctx.program.trains(Scope(target.path, target.name))


def _is_result(name: ast.AST, statement: ast.Assign, ctx: FileFacts) -> bool:
    if not isinstance(name, ast.Name) or not isinstance(name.ctx, ast.Load):
        return False
    return any(made.node is statement for made in ctx.inference.flow.definitions(name))


def stands_in_training(forward: ast.Call, ctx: FileFacts) -> bool:
    """Whether the loop around a forward, or what has no loop, trains as well: gradients stay on there."""
    loops = ctx.loops(forward)
    return not loops or bool(_backwards(list(walk(loops[0]))))


def _backwards(parts: list[ast.AST]) -> list[ast.Call]:
    """The backward passes among some nodes, in the order of the source."""
    found = [part for part in parts if isinstance(part, ast.Call) and callee_name(part) in BACKWARD_CALLS]
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))


def _calls_that_train(parts: list[ast.AST], ctx: FileFacts) -> list[ast.Call]:
    """Where a function has no backward pass itself: its calls of functions of the project that train, in loops."""
    calls = [part for part in parts if isinstance(part, ast.Call) and ctx.loops(part)]
    found = [call for call in calls if _calls_what_trains(call, ctx)]
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))


def _run_in_training(backwards: list[ast.Call], ctx: FileFacts) -> set[str]:
    """Names of the models that run in the innermost loops that walk back, there or by a function they are given to."""
    loops = [loop for call in backwards for loop in ctx.loops(call)[:1]]
    calls = [part for loop in loops for part in walk(loop) if isinstance(part, ast.Call)]
    found = {model_name(call, ctx) for call in calls if runs_model(call, ctx)}
    return found.union(*(run_for(call, ctx) for call in calls))


def _given_to_training(backwards: list[ast.Call]) -> set[str]:
    """Names of all that is handed to functions that train, by which a model of the same name is known."""
    given = [item for call in backwards if callee_name(call) not in BACKWARD_CALLS for item in call.args]
    return {name_of_whole(item) for item in given if isinstance(item, (ast.Name, ast.Attribute))}


def _handed_to_training(backwards: list[ast.Call], ctx: FileFacts) -> set[str]:
    """Names of what is handed to functions that run it as a module and walk its result back: models, whatever their
    names say.
    """
    found: set[str] = set()
    for call in backwards:
        ref = None if callee_name(call) in BACKWARD_CALLS else ctx.project_target(call.func)
        if ref is not None:
            given = arguments_by_name(call, ctx.program.function(Scope(ref.path, ref.name)))
            found |= {name_of_whole(item) for name, item in given.items() if name in ctx.effects(call).trains}
    return found - {""}


def _trains(loop: ast.AST, backwards: list[ast.Call]) -> bool:
    begin, end = (loop.lineno, loop.col_offset), (loop.end_lineno, loop.end_col_offset)  # type: ignore[attr-defined]
    at = bisect_left(backwards, begin, key=lambda call: (call.lineno, call.col_offset))
    return at < len(backwards) and (backwards[at].lineno, backwards[at].col_offset) < end


def _follows_eval(loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether `model.eval()` stands above the loop in its block, with no `model.train()` between."""
    block = ctx.tree.block_of(loop)
    for statement in reversed(block[: block.index(loop)]):
        for part in walk(statement):
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "train":
                return False
        if evaluated_by(statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else statement):
            return True
    return False


def _ends_training(loop: ast.stmt, backwards: list[ast.Call], ctx: FileFacts) -> bool:
    """Whether all training is over: every backward stands above the loop, in another loop that ended."""
    around = {id(outer) for outer in ctx.tree.ancestors(loop)}
    return all(
        ctx.loops(call) and call.lineno < loop.lineno and id(ctx.loops(call)[-1]) not in around for call in backwards
    )


def _is_walked_back(loop: ast.AST, call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a backward may walk through what the loop binds or collects."""
    bound = {id(part) for part in walk(loop)}
    filled = {
        name_of_whole(part.func.value)
        for part in walk(loop)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in ("append", "add_")
    } | {part.target.id for part in walk(loop) if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name)}
    for part in walk(call):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            if part.id in filled or any(id(made.node) in bound for made in ctx.inference.flow.definitions(part)):
                return True
    return False


def _first_forward(loop: ast.AST, trained: set[str], handed: set[str], ctx: FileFacts) -> Iterator[ast.Call]:
    forwards = [
        part
        for part in walk(loop)
        if isinstance(part, ast.Call)
        and (runs_model(part, ctx) or model_name(part, ctx) in handed)
        and model_name(part, ctx) in trained
        and not ctx.grad_off(part)
        and not may_differentiate(part, ctx)
    ]
    helper = None if forwards else run_by_helper(list(walk(loop)), trained, ctx)
    if forwards:
        yield min(forwards, key=lambda call: (call.lineno, call.col_offset))
    elif helper is not None:
        yield helper


def evaluating_passes(parts: list[ast.AST], ctx: FileFacts) -> Iterator[ast.Call]:
    """The first forward of a loop over batches, of a model put into evaluation mode above it, in code that neither
    trains nor names gradients: a feature extraction, a calibration, a test script, whatever it is called. `parts` is
    all that stands in that code.
    """
    switched = _evaluated_on(parts)
    switching = {id(name) for part in parts if isinstance(part, (ast.With, ast.AsyncWith)) for name in _switching(part)}
    if (
        not switched
        or asks_in(part for part in parts if id(part) not in switching)
        or any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in parts)
    ):
        return
    forwards = [
        part
        for part in parts
        if isinstance(part, ast.Call)
        and runs_part(part, ctx)
        and any(_is_behind(part, switched[name], parts) for name in names_of_models(part, ctx) if name in switched)
        and ctx.role(part) in _PASSES
        and any(ctx.is_root_loop(loop) for loop in ctx.loops(part))
        and not ctx.grad_off(part)
    ]
    if forwards and not any(may_differentiate(part, ctx) for part in forwards):
        yield min(forwards, key=lambda call: (call.lineno, call.col_offset))


def _switching(statement: ast.With | ast.AsyncWith) -> Iterator[ast.AST]:
    """What names gradients in `with torch.no_grad():`, which asks for none."""
    for item in statement.items:
        if isinstance(item.context_expr, ast.Call) and callee_name(item.context_expr) in _OFF:
            yield from walk(item.context_expr.func)


def _evaluated_on(parts: list[ast.AST]) -> dict[str, list[int]]:
    """The lines on which models are put into evaluation mode, by the name of the model."""
    found: dict[str, list[int]] = {}
    for part in parts:
        for name in evaluated_by(part):
            found.setdefault(name, []).append(part.lineno)  # type: ignore[attr-defined]
    return found


def _is_behind(call: ast.Call, lines: list[int], parts: list[ast.AST]) -> bool:
    """Whether the last switch of modes above a forward is one to evaluation."""
    above = [line for line in lines if line < call.lineno]
    return bool(above) and not any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr == "train"
        and max(above) < part.lineno < call.lineno
        for part in parts
    )


def goes_to_numpy(forward: ast.Call, parts: list[ast.AST], ctx: FileFacts) -> bool:
    """Whether the result of a forward is made an array as it is, `scores.cpu().numpy()`: that raises for a tensor with
    a graph, so whoever calls this has switched gradients off.
    """
    statement = ctx.tree.statement_of(forward)
    if not isinstance(statement, ast.Assign) or statement.value is not forward or len(statement.targets) != 1:
        return False
    made = [_made_of(part) for part in parts if isinstance(part, ast.Call) and callee_name(part) == "numpy"]
    return any(
        bool(bound := ctx.inference.flow.definitions(name)) and all(item.node is statement for item in bound)
        for name in made
        if name is not None
    )


def _made_of(read: ast.Call) -> ast.Name | None:
    """`scores` of `scores.cpu().numpy()`, with nothing between but moves."""
    value: ast.expr = read
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr not in ("numpy", "cpu", "float", "squeeze", "to"):
            return None
        value = value.func.value
    return value if isinstance(value, ast.Name) else None


def first_with_gradients(parts: list[ast.AST], models: set[str], ctx: FileFacts, at_least: Heat) -> ast.Call | None:
    """The first forward, in source order, of what was put into evaluation mode; none where one may need gradients."""
    forwards = [
        part
        for part in parts
        if isinstance(part, ast.Call)
        and runs_part(part, ctx)
        and not models.isdisjoint(names_of_models(part, ctx))
        and not ctx.grad_off(part)
        and (ctx.heat(part) >= at_least or (at_least < Heat.STEP and ctx.loops(part)))
    ]
    if any(may_differentiate(forward, ctx) for forward in forwards):
        return None
    return min(forwards, key=lambda call: (call.lineno, call.col_offset), default=None)


def is_evaluated_as_a_whole(forward: ast.Call, ctx: FileFacts) -> bool:
    """Whether what is around a forward is looked at as a whole, here or by who calls it."""
    function = ctx.tree.function_of(forward)
    if function is None:
        return forward in evaluating_passes(script_parts(ctx), ctx) or forward in evaluating_forwards(
            ctx.tree.module, ctx
        )
    if function.name == "forward":
        return True  # who runs the module has the say
    if EVALUATES.search(function.name):
        return any(evaluated(part) for part in walk(function))
    return (
        predicts(function) or forward in evaluating_forwards(function, ctx) or forward in ctx.once(_passes_of, function)
    )


def _passes_of(function: ast.FunctionDef | ast.AsyncFunctionDef, ctx: FileFacts) -> list[ast.Call]:
    return list(evaluating_passes(ctx.body(function), ctx))


def predicts(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function is named for what a model says, and puts the model into evaluation mode to ask it."""
    return PREDICTS.search(function.name) is not None and any(evaluated(part) for part in walk(function))


def evaluating_script(node: ast.Call, ctx: FileFacts) -> list[ast.AST]:
    """The parts of a script without functions, at the first model that it puts into evaluation mode; else nothing."""
    if not evaluated(node) or ctx.tree.function_of(node) is not None or ctx.tree.class_of(node) is not None:
        return []
    parts = script_parts(ctx)
    calls = [part for part in parts if isinstance(part, ast.Call) and evaluated(part)]
    return parts if calls and min(calls, key=lambda call: call.lineno) is node else []
