"""Other ways to go over the batches of a loader."""

from __future__ import annotations

import ast
from collections.abc import Callable

from . import keeps

#: A loop and the name that it goes over; gives the statements that stand in its place.
Write = Callable[[ast.For, ast.Name], list[ast.stmt]]


@keeps
def loaders_out_of_a_dict(module: ast.Module) -> bool:
    """`for batch in {"train": loader}["train"]`, through a name."""

    def held(loop: ast.For, name: ast.Name) -> list[ast.stmt]:
        loop.iter = ast.parse('loaders_by_phase["train"]', mode="eval").body
        before = ast.parse(f'loaders_by_phase = {{"train": {name.id}}}').body[0]
        return [before, loop]

    return _loops_over_names(module, held)


@keeps
def batches_with_their_number(module: ast.Module) -> bool:
    """`for _, batch in enumerate(loader)`."""

    def numbered(loop: ast.For, name: ast.Name) -> list[ast.stmt]:
        loop.target = ast.Tuple([ast.Name("_number", ast.Store()), loop.target], ast.Store())
        loop.iter = ast.Call(ast.Name("enumerate", ast.Load()), [name], [])
        return [loop]

    return _loops_over_names(module, numbered)


def _loops_over_names(module: ast.Module, write: Write) -> bool:
    """Write the loops of a module over plain names anew; whether there were any."""
    changer = _Loops(write)
    changer.visit(module)
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
