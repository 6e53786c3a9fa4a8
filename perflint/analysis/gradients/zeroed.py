"""Gradients that a loop sets to zero, one parameter after the other."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import callee_name, is_constant, keyword
from perflint.ir.notation import last_name
from perflint.syntax.walk import walk


def zeroes_gradients(function: ast.FunctionDef, ctx: FileFacts) -> Iterator[ast.expr | ast.Assign]:
    """Gradients of one parameter after the other that are zeroed, and a switch that is off by default."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [
        *zip(reversed(positional), reversed(arguments.defaults)),
        *zip(arguments.kwonlyargs, arguments.kw_defaults),
    ]
    for argument_, default in defaults:
        if argument_.arg == "set_to_none" and is_constant(default, value=False) and default is not None:
            if not any(
                is_constant(keyword(part, "set_to_none"), value=True)
                for part in walk(function)
                if isinstance(part, ast.Call)
            ) and not _is_of_a_model(function, ctx):
                yield default
    offers = any(item.arg == "set_to_none" for item in [*positional, *arguments.kwonlyargs])
    for part in walk(function):
        if isinstance(part, ast.Assign) and is_constant(part.value, value=False):
            if any(isinstance(target, ast.Name) and target.id == "set_to_none" for target in part.targets):
                yield part
        elif isinstance(part, ast.Call) and callee_name(part) == "zero_" and not offers:
            if _is_of_loop(part, ctx) and not has_written_gradients(part, ctx):
                yield part


def _owner(zeroed: ast.Call) -> str:
    """`p` for `p.grad.zero_()` and `p.grad.data.zero_()`."""
    value = zeroed.func.value if isinstance(zeroed.func, ast.Attribute) else None
    if isinstance(value, ast.Attribute) and value.attr == "data":
        value = value.value
    if isinstance(value, ast.Attribute) and value.attr == "grad" and isinstance(value.value, ast.Name):
        return value.value.id
    return ""


def _is_of_loop(zeroed: ast.Call, ctx: FileFacts) -> bool:
    return any(
        isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) and loop.target.id == _owner(zeroed)
        for loop in ctx.loops(zeroed)
    )


def has_written_gradients(zeroed: ast.Call, ctx: FileFacts) -> bool:
    """Whether this file copies or adds into the gradients of what has this name: then they must be there."""
    owner = _owner(zeroed)
    for part in walk(ctx.tree.module):
        target: ast.expr | None = part.target if isinstance(part, ast.AugAssign) else None
        if isinstance(part, ast.Call) and callee_name(part) in ("copy_", "add_"):
            target = part.func.value if isinstance(part.func, ast.Attribute) else None
        if target is not None and any(_is_gradient_of(inner, owner) for inner in walk(target)):
            return True
    return False


def _is_gradient_of(node: ast.AST, owner: str) -> bool:
    """`owner.grad`, `self.owner.weight.grad`, `owners[owner].grad`"""
    if not isinstance(node, ast.Attribute) or node.attr != "grad":
        return False
    return any(last_name(part) == owner for part in walk(node.value))


def zeroes_by_default(receiver: ast.expr, ctx: FileFacts) -> bool:
    """Whether the project is held to a torch whose optimizers write zeros unless told otherwise."""
    version = ctx.pinned_torch
    return version is not None and version < (2, 0) and ctx.kind(receiver).tag is Tag.OPTIMIZER


def is_idle(function: ast.FunctionDef, ctx: FileFacts) -> bool:
    """Whether it is a function of a module that nobody calls: a method may be called on whatever has it."""
    return ctx.tree.class_of(function) is None and not ctx.program.callers(ctx.own_scope(function))


def _is_of_a_model(method: ast.FunctionDef, ctx: FileFacts) -> bool:
    """Whether a class stands for a model, whose gradients are mostly zeroed by way of the optimizer."""
    owner = ctx.tree.class_of(method)
    return owner is not None and any(
        isinstance(part, ast.FunctionDef) and part.name in ("forward", "parameters") for part in owner.body
    )
