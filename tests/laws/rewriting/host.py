"""Where a program says what device it runs on: the host, and the same with an accelerator. What a user chooses by an
option counts as the accelerator, whatever its default is: whoever trains on one says so.
"""

from __future__ import annotations

import ast
import zlib
from typing import NamedTuple

from . import cools, keeps, marked
from .cooling import _about_devices, _statements_of
from .values import _put_on_top

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_OPTIONS = "from argparse import ArgumentParser\n_parser = ArgumentParser()\n{}\n_options = _parser.parse_args()\n"
_BY_OPTION = "_device = torch.device('cuda' if {} else 'cpu')"


class _Way(NamedTuple):
    """How a program says its device: statements on top of the file, where `HERE` is the device, and what reads it.

    `moved` is what stands for `x.cuda()`, if it is not `x.to(read)`; `inside` says what functions and methods read.
    """

    top: str
    read: str
    moved: str = ""
    inside: str = ""


_CONSTANT = "_device = torch.device('HERE')"
_WAYS = {
    "constant": _Way(_CONSTANT, "_device"),
    "attribute": _Way(_CONSTANT, "_device", inside="attribute"),
    "parameter": _Way(_CONSTANT, "_device", inside="parameter"),
    "dict": _Way("_configuration = {'device': 'HERE', 'seed': 1}", "_configuration['device']"),
    "dataclass": _Way(
        "import dataclasses as _dataclasses\n@_dataclasses.dataclass\nclass _Settings:\n    seed: int = 1\n"
        "    device: str = 'HERE'\n_settings = _Settings()",
        "_settings.device",
    ),
    "objects": _Way(
        "class _Mover:\n    def __init__(self, device):\n        self.device = torch.device(device)\n"
        "    def move(self, value):\n        return value.to(self.device)\n"
        "_mover = _Mover('HERE')\n_other_mover = _Mover('THERE')\n_moved = _other_mover.move(torch.zeros(1))",
        "_mover.device",
        "_mover.move({})",
    ),
    "optional": _Way(
        "def _chosen(device=None):\n    if device is None:\n        device = torch.device('HERE')\n    return device",
        "_chosen()",
    ),
    "switch": _Way(
        "_use_cuda = USED\n" + _BY_OPTION.format("_use_cuda"), "_device", "({0}.cuda() if _use_cuda else {0})"
    ),
    "environment": _Way(_BY_OPTION.format("torch.cuda.is_available()"), "_device"),
    "option": _Way(_OPTIONS.format("_parser.add_argument('--device', default='HERE')"), "_options.device"),
    "number": _Way(
        _OPTIONS.format("_parser.add_argument('--gpu', type=int, default=NUMBER)")
        + "_device = torch.device(f'cuda:{_options.gpu}' if _options.gpu >= 0 else 'cpu')",
        "_device",
    ),
    "flag": _Way(
        _OPTIONS.format("_parser.add_argument('--FLAG', action='store_true')") + _BY_OPTION.format("FLAGGED"),
        "_device",
        "({0}.cuda() if FLAGGED else {0})",
    ),
}
#: Ways by which whoever runs the program has the last word.
_BY_USERS = frozenset({"environment", "option", "number", "flag"})
_HOST = {
    "HERE": "cpu",
    "THERE": "cuda",
    "USED": "False",
    "NUMBER": "-1",
    "FLAGGED": "_options.cuda",
    "FLAG": "cuda",
}
_DEVICE = {
    "HERE": "cuda",
    "THERE": "cpu",
    "USED": "torch.cuda.is_available()",
    "NUMBER": "0",
    "FLAGGED": "not _options.no_cuda",
    "FLAG": "no-cuda",
}


@cools(about=_about_devices)
def on_a_device_that_is_the_host(module: ast.Module) -> bool:
    """`x.to(device)` for `x.cuda()`, with a device that is the host by one of `_WAYS`."""
    changer = _Moves(_way(module, [*_WAYS.keys() - _BY_USERS]), _HOST)
    for statement in _statements_of(module):
        before, changer.changed = changer.changed, False
        changer.visit(statement)
        if changer.changed:
            marked(statement)
        changer.changed |= before
    return changer.done(module)


@keeps
def on_a_device_by_another_way(module: ast.Module) -> bool:
    """`x.to(device)` for `x.cuda()`, with the device by one of `_WAYS`."""
    changer = _Moves(_way(module, [*_WAYS]), _DEVICE)
    changer.visit(module)
    return changer.done(module)


def _way(module: ast.Module, names: list[str]) -> _Way:
    """One of the ways, by what the file says, so that other files take other ones."""
    return _WAYS[sorted(names)[zlib.crc32(ast.unparse(module).encode()) % len(names)]]


class _Moves(ast.NodeTransformer):
    """Write what moves something to the device anew; what names it in other places is the host on the host, as well."""

    def __init__(self, way: _Way, words: dict[str, str]) -> None:
        self.way, self.words, self.changed = way, words, False
        self.functions: list[ast.AST] = []
        self.classes: list[ast.AST] = []

    def done(self, module: ast.Module) -> bool:
        if self.changed:
            _put_on_top(module, ast.parse("import torch\n" + self._filled(self.way.top)).body)
        return self.changed

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.classes.append(node)
        self.generic_visit(node)
        self.classes.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        outside, node.decorator_list = node.decorator_list, []
        node.args.defaults = [self.visit(each) for each in node.args.defaults]
        self.functions.append(node)
        node.body = [self.visit(each) for each in node.body]
        self.functions.pop()
        node.decorator_list = outside
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """`model.cuda()`, which moves it in place, under an `if` where elsewhere an expression decides."""
        call, test = node.value, self._filled(self.way.moved).partition(" if ")[2].partition(" else ")[0]
        is_move = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "cuda"
        if not test or not is_move or call.args or call.keywords:  # type: ignore[attr-defined]
            return self.generic_visit(node)
        self.changed = True
        return ast.copy_location(ast.If(ast.parse(test, mode="eval").body, [node], []), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        names = ast.unparse(node.func)
        is_move = isinstance(node.func, ast.Attribute) and node.func.attr == "cuda"
        if is_move and (self._on_host or not node.args):
            return self._moved(node, node.func.value)  # type: ignore[attr-defined]
        if names in ("torch.device", "device") and node.args and self._names_device(node.args[0]):
            return self._read(node)
        is_read = isinstance(node.func, ast.Attribute) and node.func.attr == "to"
        for keyword in node.keywords:
            if keyword.arg in ("device", "map_location") and self._names_device(keyword.value):
                keyword.value = self._read(keyword.value)
        if is_read and node.args and self._names_device(node.args[0]):
            node.args[0] = self._read(node.args[0])
        self.generic_visit(node)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return self._plain(node) if self._on_host and self._names_device(node) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return self._plain(node) if self._on_host and self._names_device(node) else node

    @property
    def _on_host(self) -> bool:
        return self.words is _HOST

    def _names_device(self, value: ast.expr) -> bool:
        if isinstance(value, ast.JoinedStr) and value.values and self._on_host:
            value = value.values[0]
        word = value.value if isinstance(value, ast.Constant) else None
        return isinstance(word, str) and (word == "cuda" or (self._on_host and word.startswith("cuda:")))

    def _plain(self, node: ast.expr) -> ast.expr:
        self.changed = True
        return ast.copy_location(ast.Constant("cpu"), node)

    def _moved(self, node: ast.Call, value: ast.expr) -> ast.expr:
        self.changed = True
        value = self.visit(value)
        kept = [each for each in node.keywords if each.arg == "non_blocking"]
        is_plain = all(isinstance(one, (ast.Name, ast.Attribute, ast.expr_context)) for one in ast.walk(value))
        # What goes through a method of another object is told in there.
        is_here = self._on_host or ".move(" not in self.way.moved
        if self.way.moved and is_here and not kept and (is_plain or "{0}" not in self.way.moved):
            text = self._filled(self.way.moved).format(ast.unparse(value))
            return _placed(ast.parse(text, mode="eval").body, node)
        return ast.copy_location(ast.Call(ast.Attribute(value, "to", ast.Load()), [self._read(node)], kept), node)

    def _read(self, node: ast.expr) -> ast.expr:
        """What reads the device, where it may be read."""
        self.changed = True
        function = self.functions[-1] if self.functions else None
        text = self.way.read
        if self.way.inside == "parameter" and len(self.functions) == 1 and isinstance(function, _Function):
            text = _with_parameter(function, text)
        if self.way.inside == "attribute" and len(self.functions) == 1 and self.classes:
            text = _with_attribute(self.classes[-1], function, text)
        return _placed(ast.parse(text, mode="eval").body, node)

    def _filled(self, text: str) -> str:
        for word, written in self.words.items():
            text = text.replace(word, written)
        return text


def _with_parameter(function: ast.FunctionDef | ast.AsyncFunctionDef, value: str) -> str:
    """The name of an option of a function that nobody gives."""
    if function.args.kwarg is not None or function.name.startswith("__"):
        return value
    if all(each.arg != "run_on" for each in function.args.kwonlyargs):
        function.args.kwonlyargs.append(ast.arg("run_on"))
        function.args.kw_defaults.append(ast.parse(value, mode="eval").body)
    return "run_on"


def _with_attribute(cls: ast.AST, function: ast.AST | None, value: str) -> str:
    """The attribute of an object that keeps the device, in the methods of a class with a constructor."""
    assert isinstance(cls, ast.ClassDef)
    init = next((each for each in cls.body if isinstance(each, _Function) and each.name == "__init__"), None)
    if init is None or function not in cls.body or not isinstance(function, _Function) or not function.args.args:
        return value
    if function.args.args[0].arg != "self" or any(_is_name(each, "__slots__") for each in ast.walk(cls)):
        return value
    stored = f"self.run_on = {value}"
    if not any(ast.unparse(each) == stored for each in init.body):
        has_text = isinstance(init.body[0], ast.Expr) and isinstance(init.body[0].value, ast.Constant)
        made = ast.parse(stored).body[0]
        _placed(made, init.body[0])
        init.body.insert(int(has_text), made)
    return "self.run_on"


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _placed(made: ast.AST, node: ast.AST) -> ast.expr:
    for each in ast.walk(made):
        if isinstance(each, (ast.expr, ast.stmt)):
            ast.copy_location(each, node)
    return made  # type: ignore[return-value]
