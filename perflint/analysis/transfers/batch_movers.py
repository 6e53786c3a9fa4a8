"""Moves of batches whose kind is not known: by helpers that exist for it, entry by entry, and where the batch is."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.data import BATCH, FETCHES_BATCH, MOVES_BATCHES, MOVES_IN_PLACE
from perflint.analysis.phases.loop_purpose import names_in
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk


def is_batch_mover(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether the call moves the parameter of a helper that exists to move batches: `move_to_cuda(sample)`."""
    assert isinstance(call.func, ast.Attribute)
    function = ctx.tree.function_of(call)
    if function is not None and isinstance(call.func.value, ast.Subscript):
        return bool(FETCHES_BATCH.search(function.name)) or _puts_back_itself(call, call.func.value, ctx)
    if isinstance(call.func.value, ast.Name) and _goes_through_batch(call, call.func.value, ctx):
        return True
    if function is None or not isinstance(call.func.value, ast.Name):
        return False
    names = {item.arg for item in (*function.args.posonlyargs, *function.args.args)}
    return call.func.value.id in names and bool(MOVES_BATCHES.search(function.name)) and "model" not in function.name


def was_put_off(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether an autograd function's backward fetches what its forward copied to the host to save memory."""
    function = ctx.tree.function_of(call)
    cls = ctx.tree.parent(function) if function is not None else None
    if function is None or function.name != "backward" or not isinstance(cls, ast.ClassDef) or not call.args:
        return False
    kept = function.args.args[0].arg if function.args.args else ""
    if not ctx.text(call.args[0]).startswith(f"{kept}."):
        return False
    return any(
        isinstance(part, ast.Call) and callee_name(part) == "cpu"
        for method in cls.body
        if isinstance(method, ast.FunctionDef) and method.name == "forward"
        for part in walk(method)
    )


def _goes_through_batch(call: ast.Call, moved: ast.Name, ctx: FileFacts) -> bool:
    """Whether all parts of something called a batch are moved: `{k: v.cuda() for k, v in batch.items()}`."""
    for outer in ctx.tree.ancestors(call):
        if isinstance(outer, (ast.ListComp, ast.DictComp, ast.GeneratorExp)):
            for generator in outer.generators:
                if moved.id in names_in(generator.target):
                    return _is_of_batch(generator.iter)
        elif isinstance(outer, ast.For) and moved.id in names_in(outer.target):
            return _is_of_batch(outer.iter)
        elif isinstance(outer, ast.stmt) and not _puts_back(outer):
            return False
    return False


def _is_of_batch(source: ast.expr) -> bool:
    """`batch`, or `batch.items()`."""
    if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute):
        source = source.func.value
    return isinstance(source, ast.Name) and bool(BATCH.search(source.id))


def _puts_back(statement: ast.stmt) -> bool:
    """Whether a statement is, or leads to, `batch[key] = ...`."""
    if not isinstance(statement, ast.Assign):
        return isinstance(statement, ast.If)
    target = statement.targets[0]
    return isinstance(target, ast.Subscript) and _is_of_batch(target.value)


def _puts_back_itself(call: ast.Call, moved: ast.Subscript, ctx: FileFacts) -> bool:
    """Whether an entry of something called a batch is moved where it is: `batch[key] = batch[key].to(device)`."""
    statement = ctx.tree.parent(call)
    return (
        isinstance(statement, ast.Assign)
        and _puts_back(statement)
        and ctx.text(statement.targets[0]) == ctx.text(moved)
    )


def was_moved_in_place(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a helper has moved all that a batch holds before, where it is: `move_dict_to_device(batch, device)`."""
    assert isinstance(call.func, ast.Attribute)
    parts = [part.value for part in walk(call.func.value) if isinstance(part, ast.Subscript)]
    held = {part.id: part for part in parts if isinstance(part, ast.Name)}
    if not held:
        return False
    definitions = ctx.inference.flow.definitions
    return any(
        part.lineno < call.lineno
        # Not the batch of another loop, by the same name.
        and any(
            isinstance(item, ast.Name)
            and item.id in held
            and not set(definitions(item)).isdisjoint(definitions(held[item.id]))
            for item in part.args
        )
        for part in ctx.once(_moving_in_place, ctx.tree.function_of(call) or ctx.tree.module)
    )


def _moving_in_place(function: ast.AST, ctx: FileFacts) -> list[ast.Call]:
    """The calls in a function that move what they are given where it is."""
    return [
        part.value
        for part in ctx.walk(function)
        if isinstance(part, ast.Expr)
        and isinstance(part.value, ast.Call)
        and MOVES_IN_PLACE.search(callee_name(part.value))
    ]
