"""Other ways to come to a function: handed to another one, out of a dict or a list, one after the other; and batches
that are taken one by one.
"""

from __future__ import annotations

import ast
import zlib
from collections.abc import Callable, Iterator

from . import keeps
from .batches import _loops_over_names, _statement
from .calls import _own_functions, _put_first

_RUNNING = """
def _running(function, *args, **kwargs):
    return function(*args, **kwargs)
"""
_CHAIN = """
class _Chain:
    def __init__(self, parts):
        self.parts = parts

    def __call__(self, given):
        for part in self.parts:
            given = part(given)
        return given
"""


@keeps
def handed_to_a_runner(module: ast.Module) -> bool:
    """`_running(train, model, loader)` of an own function that calls what it is given, or what a dict has of it."""

    def handed(call: ast.Call) -> ast.expr:
        if _form(call, 2):
            one = ast.Dict([ast.Constant("first")], [call.func])
            call.func = ast.Subscript(one, ast.Constant("first"), ast.Load())
            return call
        return ast.Call(ast.Name("_running", ast.Load()), [call.func, *call.args], call.keywords)

    return _written(module, handed, _RUNNING)


@keeps
def called_in_a_chain(module: ast.Module) -> bool:
    """`_Chain([scale])(image)` of an own class that calls one thing after the other; also of a chain that is kept."""
    kept: dict[str, str] = {}

    def chained(call: ast.Call) -> ast.expr | None:
        if len(call.args) != 1 or call.keywords or isinstance(call.args[0], ast.Starred):
            return None
        chain: ast.expr = ast.Call(ast.Name("_Chain", ast.Load()), [ast.List([call.func], ast.Load())], [])
        if isinstance(call.func, ast.Name) and _form(call, 2):
            kept[call.func.id] = f"_chain_of_{call.func.id}"
            chain = ast.Name(kept[call.func.id], ast.Load())
        return ast.Call(chain, call.args, [])

    changed = _written(module, chained, _CHAIN)
    for at, each in reversed([*enumerate(module.body)]):
        if isinstance(each, ast.FunctionDef) and each.name in kept:
            made = _statement(f"{kept[each.name]} = _Chain([{each.name}])")
            module.body.insert(at + 1, ast.copy_location(made, each))
    return changed


@keeps
def one_of_several_methods(module: ast.Module) -> bool:
    """`for each in [self.log]: each(loss)`, and `getattr(self, f"train_{kind}")` of a name that is put together."""

    def several(node: ast.Expr, call: ast.Call, func: ast.Attribute) -> ast.stmt:
        first, middle, last = func.attr.partition("_")
        if middle and first and last and _form(call, 2):
            text = ast.JoinedStr([ast.Constant(f"{first}_"), ast.FormattedValue(ast.Constant(last), -1)])
            call.func = ast.Call(ast.Name("getattr", ast.Load()), [func.value, text], [])
            return node
        loop = ast.For(ast.Name("_each", ast.Store()), ast.List([func], ast.Load()), [node], [])
        call.func = ast.Name("_each", ast.Load())
        return loop

    changer = _Methods(several)
    changer.visit(module)
    return changer.changed


@keeps
def taken_by_hand(module: ast.Module) -> bool:
    """`turns = iter(loader)`, and `batch = next(turns)` in `while True` until there is none."""

    def taken(loop: ast.For, name: ast.Name) -> list[ast.stmt]:
        if loop.orelse or "loader" not in name.id:
            return [loop]
        taking = ast.parse("while True:\n    try:\n        pass\n    except StopIteration:\n        break").body[0]
        assert isinstance(taking, ast.While)
        trying = taking.body[0]
        assert isinstance(trying, ast.Try)
        trying.body = [ast.Assign([loop.target], ast.parse(f"next(_turns_{name.id})", mode="eval").body)]
        taking.body += loop.body
        for each in (trying, *trying.body, *trying.handlers, *trying.handlers[0].body):
            ast.copy_location(each, loop)
        return [_statement(f"_turns_{name.id} = iter({name.id})"), taking]

    if not any(isinstance(each, ast.For) and "loader" in ast.unparse(each.iter) for each in ast.walk(module)):
        return False
    return _loops_over_names(module, taken)


def _form(call: ast.Call, forms: int) -> int:
    """Which of some forms a call is written in: by what it is of and its line, so that programs differ."""
    return zlib.crc32(f"{ast.unparse(call.func)} {call.lineno}".encode()) % forms


def _written(module: ast.Module, write: Callable[[ast.Call], ast.expr | None], defined: str) -> bool:
    """Write the calls of own functions, and of own methods of `self`, anew; put in front what is defined for that."""
    changer = _Calls(module, write)
    changer.visit(module)
    if changer.changed:
        _put_first(module, defined)
    return changer.changed


class _Calls(ast.NodeTransformer):
    def __init__(self, module: ast.Module, write: Callable[[ast.Call], ast.expr | None]) -> None:
        self.functions, self.methods = _own_functions(module), {*_plain_methods(module)}
        self.write, self.changed = write, False

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node.func:
            case ast.Name(name) if name in self.functions:
                pass
            case ast.Attribute(ast.Name("self"), name) if name in self.methods:
                pass
            case _:
                return node
        if isinstance(node.func, ast.Name) and self.functions[node.func.id].decorator_list:
            return node
        written = self.write(node)
        self.changed |= written is not None
        return node if written is None else ast.copy_location(written, node)


class _Methods(ast.NodeTransformer):
    """Statements that call an own method of `self` and do nothing with what it gives."""

    def __init__(self, write: Callable[[ast.Expr, ast.Call, ast.Attribute], ast.stmt]) -> None:
        self.methods: set[str] = set()
        self.write, self.changed = write, False

    def visit_Module(self, node: ast.Module) -> ast.AST:
        self.methods = {*_plain_methods(node)}
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        match node.value:
            case ast.Call(ast.Attribute(ast.Name("self"), name) as func) as call if name in self.methods:
                self.changed = True
                return ast.copy_location(self.write(node, call, func), node)
        return node


def _plain_methods(module: ast.Module) -> Iterator[str]:
    """Names of methods without a decorator that nothing but methods has."""
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            for each in node.body:
                if isinstance(each, ast.FunctionDef) and not each.decorator_list and not each.name.startswith("__"):
                    yield each.name
