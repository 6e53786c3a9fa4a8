"""Other places to keep a value between where it is made and where it is used."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator

from . import keeps

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
#: What sees the names of the function that it stands in.
_SEES_NAMES = {"locals", "vars", "eval", "exec", "super", "__class__"}


@keeps
def options_in_a_dict(module: ast.Module) -> bool:
    """`f(x, **call_options)` with the dict just before, where there are two options or more."""
    numbers = itertools.count()

    def written(each: ast.stmt, call: ast.Call) -> list[ast.stmt]:
        if len(call.keywords) < 2 or not all(keyword.arg for keyword in call.keywords):
            return [each]
        keys: list[ast.expr | None] = [ast.Constant(keyword.arg) for keyword in call.keywords]
        made = ast.Dict(keys, [keyword.value for keyword in call.keywords])
        name = f"call_options_{next(numbers)}"
        call.keywords = [ast.keyword(None, ast.Name(name, ast.Load()))]
        return [ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], made), each), each]

    return _calls(module, written)


@keeps
def arguments_in_a_tuple(module: ast.Module) -> bool:
    """`f(*call_arguments)` with the tuple just before, of functions and methods of the module."""
    own, numbers = {each.name for each in _functions(module)}, itertools.count()

    def written(each: ast.stmt, call: ast.Call) -> list[ast.stmt]:
        called = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        if called not in own or not call.args or any(isinstance(one, ast.Starred) for one in call.args):
            return [each]
        made, name = ast.Tuple(call.args, ast.Load()), f"call_arguments_{next(numbers)}"
        call.args = [ast.Starred(ast.Name(name, ast.Load()), ast.Load())]
        return [ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], made), each), each]

    return _calls(module, written)


@keeps
def literals_in_a_configuration(module: ast.Module) -> bool:
    """A number that is an argument of a call, out of the default of a field of a dataclass."""

    def written(values: list[str]) -> str:
        fields = [f"    number_{i}: {type(ast.literal_eval(v)).__name__} = {v}" for i, v in enumerate(values)]
        head = ["import dataclasses as _dataclasses", "@_dataclasses.dataclass", "class _Configuration:"]
        return "\n".join([*head, *fields, "_configuration = _Configuration()"])

    return _literals(module, "_configuration.number_{}", written)


@keeps
def returned_in_a_named_tuple(module: ast.Module) -> bool:
    """Functions of the module return `_Returned(EXPR)`, and their callers take it out."""

    def boxed(value: ast.expr) -> ast.expr:
        return ast.Call(ast.Name("_Returned", ast.Load()), [value], [])

    if not _returned(module, boxed, lambda call: ast.Attribute(call, "value", ast.Load())):
        return False
    text = "from typing import Any as _Any, NamedTuple as _NamedTuple\nclass _Returned(_NamedTuple):\n    value: _Any"
    _put_on_top(module, ast.parse(text).body)
    return True


def _functions(module: ast.Module) -> Iterator[_Function]:
    return (each for each in ast.walk(module) if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)))


def _of_function(function: ast.AST) -> Iterator[ast.AST]:
    """What runs as part of a function itself; comprehensions count as its own."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, _SCOPES):
            yield child
            yield from _of_function(child)


def _put_on_top(module: ast.Module, added: list[ast.stmt]) -> None:
    """Put statements below what must stand first, as lines that are new."""
    for each in added:
        for node in ast.walk(each):
            if isinstance(node, (ast.stmt, ast.expr)):
                node.lineno = node.end_lineno = node.col_offset = node.end_col_offset = 0
    at = 0
    for i, each in enumerate(module.body):
        if isinstance(each, ast.Expr) or (isinstance(each, ast.ImportFrom) and each.module == "__future__"):
            at = i + 1
        else:
            break
    module.body[at:at] = added


def _calls(module: ast.Module, write: Callable[[ast.stmt, ast.Call], list[ast.stmt]]) -> bool:
    """Write the calls anew that are a whole statement, the right side of one or what a function returns."""

    class Changer(ast.NodeTransformer):
        changed = False

        def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
            node.body = [
                self.visit(each) if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else each
                for each in node.body
            ]
            return node

        def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
            return self._of(node, node.value)

        def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
            return self._of(node, node.value)

        def visit_Return(self, node: ast.Return) -> ast.AST | list[ast.stmt]:
            return self._of(node, node.value)

        def _of(self, node: ast.stmt, value: ast.expr | None) -> ast.AST | list[ast.stmt]:
            if not isinstance(value, ast.Call) or any(
                isinstance(one, (ast.Yield, ast.Await, ast.NamedExpr)) for one in ast.walk(value)
            ):
                return node
            if any(isinstance(one, ast.Name) and one.id in _SEES_NAMES for one in ast.walk(value.func)):
                return node
            written = write(node, value)
            self.changed |= len(written) > 1
            return written

    changer = Changer()
    changer.visit(module)
    return changer.changed


def _literals(module: ast.Module, place: str, write: Callable[[list[str]], str]) -> bool:
    """Take the numbers that are arguments of calls in functions out of a place of the module."""
    values: list[str] = []

    def taken(value: ast.expr) -> ast.expr:
        if not isinstance(value, ast.Constant) or type(value.value) not in (int, float):
            return value
        values.append(repr(value.value))
        made = ast.parse(place.format(len(values) - 1), mode="eval").body
        for node in ast.walk(made):
            ast.copy_location(node, value)
        return made

    for function in _functions(module):
        for call in _of_function(function):
            if isinstance(call, ast.Call):
                call.args = [taken(each) for each in call.args]
                for keyword in call.keywords:
                    keyword.value = taken(keyword.value)
    if values:
        _put_on_top(module, ast.parse(write(values)).body)
    return bool(values)


def _returned(module: ast.Module, box: Callable[[ast.expr], ast.expr], take: Callable[[ast.Call], ast.expr]) -> bool:
    """Let the functions of a module that only calls in it name return their values in something else."""
    functions = {each.name: each for each in module.body if isinstance(each, ast.FunctionDef)}
    called = [each for each in ast.walk(module) if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)]
    elsewhere: set[str] = getattr(module, "imported_elsewhere", set())
    fit = {}
    for name, each in functions.items():
        named = sum(1 for node in ast.walk(module) if isinstance(node, ast.Name) and node.id == name)
        calls = [call for call in called if isinstance(call.func, ast.Name) and call.func.id == name]
        returns = [node for node in _of_function(each) if isinstance(node, ast.Return)]
        plain = not each.decorator_list and name not in elsewhere and named == len(calls)
        if plain and calls and returns and isinstance(each.body[-1], ast.Return) and all(one.value for one in returns):
            if not any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in _of_function(each)):
                fit[name] = returns
                each.returns = None
    for returns in fit.values():
        for one in returns:
            assert one.value is not None
            one.value = box(one.value)

    class Taker(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            self.generic_visit(node)
            return take(node) if isinstance(node.func, ast.Name) and node.func.id in fit else node

    Taker().visit(module)
    return bool(fit)
