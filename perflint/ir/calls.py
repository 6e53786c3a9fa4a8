"""The callee and the arguments of a call, as they are written."""

from __future__ import annotations

import ast

from perflint.ir.notation import last_name


def callee_name(call: ast.Call) -> str:
    """The last name of a callee as written: `collect` for `gc.collect()`, `DataLoader` for `DataLoader[int](...)`."""
    func = call.func
    if type(func) is ast.Subscript:
        func = func.value
    return last_name(func)


def arguments_of(call: ast.Call) -> list[ast.expr]:
    """What a call is given, by place and then by name."""
    return [*call.args, *[item.value for item in call.keywords]]


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument, None when it is not given."""
    for item in call.keywords:
        if item.arg == name:
            return item.value
    return None


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """The value passed at `position` or as keyword `name`; None when neither, or when `*args` may hold it."""
    for index, item in enumerate(call.args[: position + 1]):
        if isinstance(item, ast.Starred):
            return keyword(call, name)
        if index == position:
            return item
    return keyword(call, name)


def of_tensor(call: ast.Call) -> tuple[ast.expr, list[ast.expr]] | None:
    """What `x.unsqueeze(0)` and `torch.unsqueeze(x, 0)` are of, and what else they are given by place."""
    func = call.func
    if not isinstance(func, ast.Attribute):
        return None
    if isinstance(func.value, ast.Name) and func.value.id == "torch":
        return (call.args[0], call.args[1:]) if call.args else None
    return func.value, call.args


def has_unpacking(call: ast.Call) -> bool:
    """Whether `*args` or `**kwargs` may carry arguments that cannot be seen."""
    return any(isinstance(item, ast.Starred) for item in call.args) or any(item.arg is None for item in call.keywords)


def is_constant(node: ast.expr | None, value: object) -> bool:
    """Whether `node` is the literal `value`, of the very same type (`True` is no 1)."""
    return isinstance(node, ast.Constant) and type(node.value) is type(value) and node.value == value
