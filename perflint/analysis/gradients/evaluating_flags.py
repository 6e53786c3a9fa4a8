"""Functions that train and evaluate, as their callers say by a flag: `run_epoch(loader, train=False)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.feasibility.at_nodes import conditions_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.frozen import is_frozen
from perflint.analysis.gradients.method_forwards import runs_model
from perflint.analysis.gradients.model_calls import may_differentiate
from perflint.analysis.gradients.results import switches_itself
from perflint.analysis.names.refs import Scope
from perflint.finding import Heat, Hop
from perflint.ir.callees import last_name

_Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"
#: What says that a function, or who calls it, sees to gradients.
_SWITCHES = frozenset({"set_grad_enabled", "enable_grad", "no_grad", "inference_mode", "autograd"})


class FlaggedEvaluation(NamedTuple):
    """The first forward, with gradients, of a function that a call runs without a backward pass, and that call."""

    forward: ast.Call
    call: Hop


def flagged_evaluation(function: _Function, ctx: FileFacts) -> FlaggedEvaluation | None:
    """What a call of a function runs with gradients, where the constants that it passes rule out all its training."""
    scope = ctx.own_scope(function)
    if not ctx.program.trains(scope) or _sees_to_gradients(scope, ctx):
        return None
    for edge in _evaluating(scope, ctx):
        forwards = [
            forward
            for forward in _forwards(function, ctx)
            if _runs_often(forward, edge, ctx) and ctx.program.reaches(edge, conditions_of(forward, ctx))
        ]
        # Behind a first network that records nothing, the others are heads.
        if forwards and not is_frozen(forwards[0], ctx) and not switches_itself(forwards[0], ctx, wholly=True):
            return FlaggedEvaluation(forwards[0], Hop(edge.caller.path, edge.line, "this call runs no backward pass"))
    return None


def _evaluating(scope: Scope, ctx: FileFacts) -> Iterator[Edge]:
    """The calls of a function with gradients on that let it come to no training, and do none with what it gives."""
    for edge in ctx.program.callers(scope):
        if edge.callback or edge.stands_in or edge.index < 0 or ctx.program.never_runs(edge.caller):
            continue
        if ctx.program.grad_off(edge.caller, edge.context) or _sees_to_gradients(edge.caller, ctx):
            continue
        if not ctx.program.trains_through(edge) and not _walks_back(edge.caller, ctx):
            yield edge


def _forwards(function: _Function, ctx: FileFacts) -> list[ast.Call]:
    found = [
        part
        for part in ctx.body(function)
        if isinstance(part, ast.Call)
        and runs_model(part, ctx)
        and not ctx.grad_off(part)
        and not may_differentiate(part, ctx)
    ]
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))


def _runs_often(forward: ast.Call, edge: Edge, ctx: FileFacts) -> bool:
    """Whether a forward runs on each batch of an evaluation: in a loop of its function, or of the caller."""
    if ctx.heat(forward) < Heat.STEP:
        return False
    return bool(ctx.loops(forward)) or ctx.program.heat_at(edge.caller, edge.context) >= Heat.STEP


def _sees_to_gradients(scope: Scope, ctx: FileFacts) -> bool:
    return not _SWITCHES.isdisjoint(ctx.program.function(scope).identifiers.split())


def _walks_back(scope: Scope, ctx: FileFacts) -> bool:
    """Whether a function takes gradients itself, maybe of what its calls give."""
    return any(last_name(call.func) in ("backward", "grad") for call in ctx.program.function(scope).calls)
