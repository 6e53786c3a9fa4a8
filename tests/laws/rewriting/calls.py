"""Other ways to call a function."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from . import keeps

#: A call of a function of the same file; gives what stands in its place.
Write = Callable[[ast.Call, ast.Name, ast.FunctionDef], ast.expr | None]

_PASSING = """
import functools

def _passing(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs)
    return inner
"""
#: Methods of which Python makes something else than methods.
_NO_METHODS = frozenset({"__new__", "__init_subclass__", "__class_getitem__"})


@keeps
def functions_with_their_first_argument(module: ast.Module) -> bool:
    """`functools.partial(step, model)(batch)`."""

    def bound(call: ast.Call, name: ast.Name, _: ast.FunctionDef) -> ast.expr | None:
        if not call.args or isinstance(call.args[0], ast.Starred):
            return None
        partial = ast.parse("functools.partial", mode="eval").body
        return ast.Call(ast.Call(partial, [name, call.args[0]], []), call.args[1:], call.keywords)

    changer = _Calls(_own_functions(module), bound)
    changer.visit(module)
    if changer.changed:
        _put_first(module, "import functools")
    return changer.changed


@keeps
def functions_in_a_wrapper(module: ast.Module) -> bool:
    """A decorator on every function that has options, which calls it and gives what it gives."""
    changed = False
    classes = [each for each in ast.walk(module) if isinstance(each, ast.ClassDef)]
    for body in [module.body, *(each.body for each in classes)]:
        for each in body:
            if isinstance(each, ast.FunctionDef) and _may_be_wrapped(each):
                each.decorator_list.append(ast.Name("_passing", ast.Load()))
                changed = True
    if changed:
        _put_first(module, _PASSING)
    return changed


@keeps
def methods_by_getattr(module: ast.Module) -> bool:
    """`getattr(self, "step")(batch)`."""
    changed = False
    for call in _calls(module):
        func = call.func
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self":
            if not func.attr.startswith("__"):
                call.func = ast.parse(f"getattr(self, {func.attr!r})", mode="eval").body
                changed = True
    return changed


@keeps
def methods_by_another_name(module: ast.Module) -> bool:
    """`step = self.step` before `step(batch)`."""
    methods = {each.name for each in ast.walk(module) if isinstance(each, ast.FunctionDef)}
    changer = _Aliases(methods)
    changer.visit(module)
    return changer.changed


def _may_be_wrapped(function: ast.FunctionDef) -> bool:
    has_options = bool(function.args.defaults or any(function.args.kw_defaults))
    return has_options and not function.decorator_list and function.name not in _NO_METHODS


class _Aliases(ast.NodeTransformer):
    """A name for each method that a simple statement calls on a name, just before it."""

    def __init__(self, methods: set[str]) -> None:
        self.methods, self.changed = methods, False

    def _simple(self, node: ast.stmt) -> ast.AST | list[ast.stmt]:
        before: list[ast.stmt] = []
        if any(isinstance(each, (ast.Lambda, ast.comprehension, ast.Await, ast.Yield)) for each in ast.walk(node)):
            return node
        for call in _calls(node):
            func = call.func
            if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.attr in self.methods:
                name = f"_{func.attr.strip('_')}"
                before.append(ast.copy_location(ast.parse(f"{name} = {ast.unparse(func)}").body[0], node))
                call.func = ast.copy_location(ast.Name(name, ast.Load()), func)
                self.changed = True
                break
        return [*before, node]

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign, ast.Return)):
            return self._simple(node)
        return self.generic_visit(node)


def _calls(node: ast.AST) -> list[ast.Call]:
    return [each for each in ast.walk(node) if isinstance(each, ast.Call)]


def _own_functions(module: ast.Module) -> dict[str, ast.FunctionDef]:
    """The functions of a file whose names are of nothing else in it."""
    bound = Counter(_bound(module))
    return {each.name: each for each in module.body if isinstance(each, ast.FunctionDef) and bound[each.name] == 1}


def _bound(module: ast.Module) -> Iterator[str]:
    methods = {id(each) for node in ast.walk(module) if isinstance(node, ast.ClassDef) for each in node.body}
    for node in ast.walk(module):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if id(node) not in methods:
                yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from node.names


class _Calls(ast.NodeTransformer):
    def __init__(self, functions: dict[str, ast.FunctionDef], write: Write) -> None:
        self.functions, self.write, self.changed = functions, write, False

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id not in self.functions:
            return node
        written = self.write(node, node.func, self.functions[node.func.id])
        self.changed |= written is not None
        return node if written is None else ast.copy_location(written, node)


def _put_first(module: ast.Module, text: str) -> None:
    """Put statements before those of a file, after what it says of itself and imports of the future."""
    at = 0
    for place, each in enumerate(module.body):
        is_text = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
        if not (is_text or (isinstance(each, ast.ImportFrom) and each.module == "__future__")):
            at = place
            break
    added = ast.parse(text).body
    for statement in added:
        for node in ast.walk(statement):
            if isinstance(node, (ast.stmt, ast.expr)):
                node.lineno = node.end_lineno = 0
    module.body[at:at] = added
