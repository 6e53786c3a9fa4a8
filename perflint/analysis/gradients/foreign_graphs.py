"""The forward of a network that is not trained here whose graph reaches a value: through functions of torch and of the
program that compute with it, names and parts.
"""

from __future__ import annotations

import ast

from perflint.analysis.call_graph.given_arguments import given_arguments
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.asked_for_parameters import is_asked_for_parameters
from perflint.analysis.gradients.graph_of_loss import goes_through
from perflint.analysis.gradients.method_forwards import network_of, runs_own_layers
from perflint.analysis.gradients.model_calls import is_model_call
from perflint.analysis.gradients.module_sizes import holds_weights
from perflint.analysis.gradients.passing_on import passes_on
from perflint.analysis.gradients.results import CARRIERS, computes, may_hold_parameters
from perflint.analysis.gradients.trained_after import values_of
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import callee_name

_MOST_PARTS = 64
#: Layers of torch that hold what they are given.
_CONTAINERS = ("Sequential", "ModuleList", "ModuleDict", "Module", "DataParallel")
#: Methods whose results have no graph of what they are called on.
_CUTTING = frozenset("detach detach_ item numpy tolist argmax argmin multinomial long int bool".split())


def foreign_maker(given: ast.expr, trained: set[str], ctx: FileFacts) -> ast.Call | None:
    """The first forward of a network that is not one of `trained` whose graph a value has, where it has none of those.
    None where something on the way is not plain to see.
    """
    found: ast.Call | None = None
    waiting, seen = [given], set[int]()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if len(seen) > _MOST_PARTS:
            return None
        if isinstance(value, ast.Call):
            if is_model_call(value, ctx) or runs_own_layers(value, ctx):
                if network_of(value, ctx) in trained:
                    return None
                if found is None and not ctx.grad_off(value) and _learns(value.func, ctx):
                    found = value
                continue
            parts = _given_on(value, ctx)
            if parts is None:
                continue
            waiting += parts
        elif isinstance(value, ast.Name):
            waiting += values_of(value, ctx)
        else:
            waiting += _parts(value)
    return None if found is None or goes_through(given, trained, ctx) else found


def _learns(network: ast.expr, ctx: FileFacts) -> bool:
    """Whether what is called, or the object of a method, has parameters: those that someone asks it for, here or where
    it comes from, or those of its class.
    """
    made = ctx.kind(network)
    if made.tag is Tag.MODULE and (
        holds_weights(made.path, made.qualified, ctx)
        if made.path
        else may_hold_parameters(made.qualified) and not made.qualified.endswith(_CONTAINERS)
    ):
        return True
    owners = [network, *([network.value] if isinstance(network, ast.Attribute) else ())]
    return any(
        is_asked_for_parameters(given, there)
        for owner in owners
        for given, there in ((owner, ctx), *given_arguments(owner, ctx))
    )


def _parts(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.BinOp):
        return [value.left, value.right]
    if isinstance(value, (ast.Tuple, ast.List)):
        return value.elts
    if isinstance(value, ast.UnaryOp):
        return [value.operand]
    return [value.value] if isinstance(value, ast.Subscript) else []


def _given_on(call: ast.Call, ctx: FileFacts) -> list[ast.expr] | None:
    """What the graph of a call's result leads on to, None where it ends or nobody knows."""
    if callee_name(call) in _CUTTING:
        return None
    if computes(call, ctx) or passes_on(call, ctx):
        return [*call.args, *(item.value for item in call.keywords)]
    if isinstance(call.func, ast.Attribute) and call.func.attr in CARRIERS:
        return [call.func.value]
    return None
