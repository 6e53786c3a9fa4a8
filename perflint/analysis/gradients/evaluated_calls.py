"""Which calls are run for their values alone: without gradients, or in evaluation mode."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.model_calls import is_model_call
from perflint.analysis.names.refs import Scope
from perflint.ir.calls import callee_name

_NESTING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def may_evaluate(function: ast.FunctionDef | ast.AsyncFunctionDef, ctx: FileFacts) -> bool:
    """Whether anything runs without gradients or in evaluation mode in a function, or in one that it calls: told by
    summaries, so that nothing of most functions is looked at.
    """
    if ctx.program.mentions(("run_with_cache",)) or any(isinstance(item, _NESTING) for item in function.body):
        return True
    scope = ctx.own_scope(function)
    words = ctx.program.function(scope).identifiers  # empty in nested functions
    if not words or "eval" in words or _switches_off(scope, ctx):
        return True
    return any(_switches_off(edge.callee, ctx) for edge in ctx.program.graph.outgoing.get(scope, ()))


def _switches_off(scope: Scope, ctx: FileFacts) -> bool:
    """Whether gradients are off in a function or in some of it."""
    contexts = ctx.program.function(scope).contexts
    return any(item.kind == "no_grad" for item in contexts) or ctx.program.grad_off(scope)


def only_evaluates(call: ast.Call, function: ast.stmt, ctx: FileFacts) -> bool:
    """Whether the result is looked at and not trained on: gradients off, an analysis call, or evaluation mode."""
    if ctx.grad_off(call) or callee_name(call) == "run_with_cache":
        return True
    model = ctx.text(call.func)
    evaluates = any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr == "eval"
        and ctx.text(part.func.value) == model
        for statement in ctx.tree.naming(("eval",), function, called=("eval",))
        for part in ctx.tree.own(statement)
    )
    return evaluates and not ctx.program.trains(ctx.scope(call))


def is_first_forward(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether no forward stands before this one in its function: one `with` serves all."""
    function = ctx.tree.function_of(node) or ctx.tree.module
    forwards = (
        (part.lineno, part.col_offset)
        for part in ctx.walk(function)
        if isinstance(part, ast.Call) and is_model_call(part, ctx) and not ctx.grad_off(part)
    )
    return (node.lineno, node.col_offset) == min(forwards, default=(0, 0))
