"""Other ways to go over the batches of a loader."""

from __future__ import annotations

import ast
from collections.abc import Callable

from . import keeps

#: A loop and the name that it goes over; gives the statements that stand in its place.
Write = Callable[[ast.For, ast.Name], list[ast.stmt]]


@keeps
def loaders_out_of_a_dict(module: ast.Module) -> bool:
    """`for batch in {"first": loader}["first"]`, through a name."""

    def held(loop: ast.For, name: ast.Name) -> list[ast.stmt]:
        loop.iter = ast.parse('kept_by_name["first"]', mode="eval").body
        return [_statement(f'kept_by_name = {{"first": {name.id}}}'), loop]

    return _loops_over_names(module, held)


@keeps
def passed_on_by_a_generator(module: ast.Module) -> bool:
    """`for batch in passed_on(loader)` of an own generator."""

    def passed(loop: ast.For, name: ast.Name) -> list[ast.stmt]:
        loop.iter = ast.Call(ast.Name("passed_on", ast.Load()), [name], [])
        return [loop]

    return _loops_over_names(module, passed, "def passed_on(given):\n    yield from given")


@keeps
def unpacked_afterwards(module: ast.Module) -> bool:
    """`for pair in loader: a, b = pair`."""

    def unpacked(loop: ast.For, name: ast.Name) -> list[ast.stmt]:
        if isinstance(loop.target, ast.Tuple):
            told = ast.Assign([loop.target], ast.Name("pair", ast.Load()))
            loop.target = ast.Name("pair", ast.Store())
            loop.body.insert(0, ast.copy_location(told, loop))
        return [loop]

    return _loops_over_names(module, unpacked)


@keeps
def batches_with_their_number(module: ast.Module) -> bool:
    """`for _, batch in enumerate(loader)`."""

    def numbered(loop: ast.For, name: ast.Name) -> list[ast.stmt]:
        loop.target = ast.Tuple([ast.Name("_number", ast.Store()), loop.target], ast.Store())
        loop.iter = ast.Call(ast.Name("enumerate", ast.Load()), [name], [])
        return [loop]

    return _loops_over_names(module, numbered)


def _statement(text: str) -> ast.stmt:
    return ast.parse(text).body[0]


def _loops_over_names(module: ast.Module, write: Write, defined: str = "") -> bool:
    """Write the loops of a module over plain names anew, with what is `defined` for that in front; whether there were
    any.
    """
    changer = _Loops(write)
    changer.visit(module)
    if changer.changed and defined:
        front = sum(1 for each in module.body[:1] if isinstance(each, ast.Expr))  # its docstring
        front += sum(1 for each in module.body if isinstance(each, ast.ImportFrom) and each.module == "__future__")
        added = _statement(defined)
        for each in ast.walk(added):
            if isinstance(each, ast.stmt):
                each.lineno = each.end_lineno = 0
        module.body.insert(front, added)
    return changer.changed


class _Loops(ast.NodeTransformer):
    def __init__(self, write: Write) -> None:
        self.write, self.changed = write, False

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if not isinstance(node.iter, ast.Name):
            return node
        self.changed = True
        written = self.write(node, node.iter)
        return [ast.copy_location(each, node) for each in written]
