"""Ways through a function that the program does not take: behind an argument that every caller gives, or none does."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts


def is_unused_way(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether `node` runs only with an argument that no known caller gives, or only without one that all of them give:
    `if index is None`, `mask is not None and mask.any()`.
    """
    return any(_never(test, ctx, holds=holds) for test, holds in ctx.conditions(node))


def _never(test: ast.expr, ctx: FileFacts, *, holds: bool) -> bool:
    """Whether it is known that `test` never comes out as `holds`."""
    if isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) == holds:
            return any(_never(value, ctx, holds=holds) for value in test.values)
        return False
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name)):
        return False
    other = test.comparators[0]
    if not (isinstance(other, ast.Constant) and other.value is None):
        return False
    if not isinstance(test.ops[0], (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
        return False
    is_none = isinstance(test.ops[0], (ast.Is, ast.Eq)) == holds
    return _always_given(test.left, ctx) if is_none else _never_given(test.left, ctx)


def _always_given(name: ast.Name, ctx: FileFacts) -> bool:
    return set(_given(name, ctx)) == {True}


def _never_given(name: ast.Name, ctx: FileFacts) -> bool:
    return set(_given(name, ctx)) == {False}


def _given(name: ast.Name, ctx: FileFacts) -> list[bool | None]:
    """Of each caller of the function, whether it gives the parameter `name`, whose default is None; None where that
    cannot be told.
    """
    function = ctx.tree.function_of(name)
    if function is None or not _defaults_to_none(function, name.id):
        return []
    definitions = ctx.inference.flow.definitions(name)
    if any(not isinstance(item.node, ast.arg) for item in definitions):
        return []
    arguments = [item.arg for item in (*function.args.posonlyargs, *function.args.args)]
    if ctx.tree.class_of(function) is not None:
        arguments = arguments[1:]
    place = arguments.index(name.id) if name.id in arguments else len(arguments)
    found: list[bool | None] = []
    for edge in ctx.program.callers(ctx.own_scope(function)):
        if edge.callback or edge.index < 0:
            return []
        caller = ctx.program.function(edge.caller)
        call = caller.calls[edge.index]
        keywords = dict(call.keywords)
        if name.id in keywords or place < len(call.args):
            value = keywords.get(name.id, call.args[place] if place < len(call.args) else None)
            handed_on = isinstance(value, str) and value.partition(".")[0] in {item.name for item in caller.params}
            found.append(None if value is None or handed_on or _may_be_none(value) else True)
        else:
            found.append(None if "" in keywords else False)
    return found


def _may_be_none(value: object) -> bool:
    if not isinstance(value, tuple):
        return False
    if value[0] == "call":
        name = value[1] if isinstance(value[1], str) else str(value[1][-1])
        return name.rpartition(".")[2] in ("get", "pop", "getattr")
    return bool(value[0] == "either" or value[:2] == ("const", "NoneType"))


def _defaults_to_none(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    args = function.args
    positional = [*args.posonlyargs, *args.args]
    pairs = [*zip(reversed(positional), reversed(args.defaults)), *zip(args.kwonlyargs, args.kw_defaults)]
    return any(item.arg == name and isinstance(value, ast.Constant) and value.value is None for item, value in pairs)
