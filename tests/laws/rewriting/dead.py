"""Code behind a switch: no run comes to it, or only runs with an option, where the switch is off; where it is on,
nothing is changed. Every function has its own switch, one of many ways to write one, chosen by its text.
"""

from __future__ import annotations

import ast
import copy
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from . import cools, keeps, marked

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class _Switch(NamedTuple):
    """How a switch is set, and the test that it is on. `{name}` is its own name; `{bool}`, `{int}`, `{float}`, `{str}`
    and `{opt}` are what it is set to.
    """

    where: str
    setup: str
    test: str


_OFF = {"bool": "False", "int": "0", "float": "0.0", "str": "'plain'", "opt": "None", "text": "''", "list": "[]"}
_ON = {"bool": "True", "int": "2", "float": "0.5", "str": "'more'", "opt": "3", "text": "'a'", "list": "['a']"}

_FIELDS = "import {0}\n{1}class _Class_{{name}}{2}:\n    extra: bool = {{bool}}\n{{name}} = _Class_{{name}}()"
#: What the program itself says.
LITERALS = [
    *(
        _Switch(where, "{name} = " + value, test)
        for where in ("module", "function")
        for value, test in (
            ("{bool}", "{name}"),
            ("{int}", "{name} > 0"),
            ("{float}", "{name} > 0"),
            ("{str}", "{name} == 'more'"),
            ("{str}", "{name} in ('more', 'most')"),
            ("{opt}", "{name} is not None"),
            ("{text}", "{name}"),
            ("{{'extra': {bool}, 'size': 3}}", "{name}['extra']"),
            ("dict(extra={int}, size=3)", "{name}.get('extra', 0) > 0"),
            ("{{'size': 3}}", "{name}.get('extra', {bool})"),
        )
    ),
    _Switch("module", "class {name}:\n    extra = {bool}", "{name}.extra"),
    _Switch("module", _FIELDS.format("dataclasses", "@dataclasses.dataclass\n", ""), "{name}.extra"),
    _Switch("module", _FIELDS.format("typing", "", "(typing.NamedTuple)"), "{name}.extra"),
    _Switch("module", "import types\n{name} = types.SimpleNamespace(extra={bool})", "{name}.extra"),
    _Switch("module", "import easydict\n{name} = easydict.EasyDict()\n{name}.extra = {bool}", "{name}.extra"),
    _Switch("module", "def {name}():\n    return {bool}", "{name}()"),
    _Switch("class", "{name} = {bool}", "self.{name}"),
    _Switch("class", "{name} = {float}", "self.{name} > 0"),
    _Switch("class", "def {name}(self):\n    return {bool}", "self.{name}()"),
    _Switch("class", "@property\ndef {name}(self):\n    return {bool}", "self.{name}"),
    _Switch("init", "self.{name} = {bool}", "self.{name}"),
    _Switch("init", "self.{name} = {int}", "self.{name} > 0"),
    _Switch("init", "self.{name} = {float}", "self.{name} > 0"),
    _Switch("init", "self.{name} = {str}", "self.{name} == 'more'"),
    _Switch("init", "self.{name} = {opt}", "self.{name} is not None"),
    _Switch("init", "self.{name} = {{'extra': {bool}}}", "self.{name}['extra']"),
]

_PARSER = (
    "import argparse\nparser_{{name}} = argparse.ArgumentParser()\n"
    "parser_{{name}}.add_argument('--with-{{name}}', {0})\n"
    "{{name}} = parser_{{name}}.parse_args()"
)
_IN_A_FUNCTION = (
    "import argparse\ndef options_{{name}}():\n    parser = argparse.ArgumentParser()\n"
    "    parser.add_argument('--size', type=int, default=3)\n    parser.add_argument('--with-{{name}}', {0})\n"
    "    return parser.parse_args()\n{{name}} = options_{{name}}()"
)
#: What a user may say.
OPTIONS = [
    *(
        _Switch("module", how.format(given), test)
        for how in (_PARSER, _IN_A_FUNCTION)
        for given, test in (
            ("action='store_true', default={bool}", "{name}.with_{name}"),
            ("type=int, default={int}", "{name}.with_{name} > 0"),
            ("type=int, default={int}", "{name}.with_{name}"),
            ("type=float, default={float}", "{name}.with_{name} > 0"),
            ("type=float, default={float}", "{name}.with_{name} != 0"),
            ("type=str, default={str}", "{name}.with_{name} == 'more'"),
            ("default={str}, choices=['plain', 'more', 'most']", "{name}.with_{name} in ['more', 'most']"),
            ("default={str}", "'more' in {name}.with_{name}"),
            ("default={str}", "{name}.with_{name}.startswith('more')"),
            ("type=int, default={opt}", "{name}.with_{name} is not None"),
            ("type=int, default={opt}", "{name}.with_{name}"),
            ("default={text}", "{name}.with_{name} != ''"),
            ("nargs='+', default={list}", "{name}.with_{name}"),
            ("nargs='+', default={list}", "len({name}.with_{name}) > 0"),
            ("type=lambda text: text == 'yes', default={bool}", "{name}.with_{name}"),
            ("action=argparse.BooleanOptionalAction, default={bool}", "{name}.with_{name}"),
        )
    ),
    _Switch("module", _PARSER.format("default={bool}") + "\n{name} = vars({name})", "{name}['with_{name}']"),
    _Switch("module", "import os\n{name} = os.environ.get('EXTRA', '{int}') == '2'", "{name}"),
    _Switch("parameter", "{bool}", "{name}"),
    _Switch("parameter", "{int}", "{name} > 0"),
    _Switch("parameter", "{float}", "{name} > 0"),
    _Switch("parameter", "{str}", "{name} == 'more'"),
    _Switch("parameter", "{opt}", "{name} is not None"),
    _Switch("part", "{bool}", "{name}"),
    _Switch("part", "{float}", "{name} > 0"),
    _Switch("part", "{opt}", "{name} is not None"),
    _Switch("constructor", "{bool}", "self.{name}"),
    _Switch("constructor", "{int}", "self.{name} > 0"),
    _Switch("constructor", "{float}", "self.{name} > 0"),
    _Switch("constructor", "{str}", "self.{name} == 'more'"),
    _Switch("constructor", "{opt}", "self.{name} is not None"),
    _Switch("setter", "{bool}", "self.{name}"),
]

#: Where a switch is off: what stands before the code, then the test around it.
AROUND_OFF = [
    ("", "{test}"),
    ("", "not (not {test})"),
    ("", "{test} and time.time() > 5"),
    ("", "time.time() > 5 and {test}"),
    ("", "({test} or {test}) and time.time() > 5"),
    ("chosen = {test}", "chosen"),
    ("chosen = {test} if time.time() > 5 else False", "chosen"),
    ("turns = 3 if {test} else 0", "turns > 0"),
    ("if not {test}:\n    return", ""),
    ("if not {test}:\n    raise ValueError('nothing to do')", ""),
    ("if not {test}:\n    return None\nelse:\n    print('extra')", ""),
    ("assert {test}", ""),
]
#: The same where it is on.
AROUND_ON = [
    ("", "{test}"),
    ("", "not (not {test})"),
    ("", "{test} or time.time() > 5"),
    ("", "time.time() < 5 or {test}"),
    ("", "({test} and {test}) or time.time() < 5"),
    ("chosen = {test}", "chosen"),
    ("chosen = {test} if time.time() > 5 else True", "chosen"),
    ("turns = 3 if {test} else 0", "turns > 0"),
    ("if not {test}:\n    return", ""),
    ("if not {test}:\n    raise ValueError('nothing to do')", ""),
    ("if not {test}:\n    return None\nelse:\n    print('extra')", ""),
    ("assert {test}", ""),
]


@cools()
def where_the_program_has_it_off(module: ast.Module) -> bool:
    """`EXTRA = False`, and `if EXTRA:` around what functions do, in many other words."""
    return _switched(module, LITERALS, AROUND_OFF, _OFF)


@cools()
def where_no_default_has_it_on(module: ast.Module) -> bool:
    """`def step(batch, extra=False): if extra: …`, and options of a command line."""
    return _switched(module, OPTIONS, AROUND_OFF, _OFF)


@keeps
def where_it_is_on(module: ast.Module) -> bool:
    """The same switches, on."""
    return _switched(module, LITERALS + OPTIONS, AROUND_ON, _ON)


def _switched(
    module: ast.Module, switches: list[_Switch], around: list[tuple[str, str]], values: dict[str, str]
) -> bool:
    changed, added = False, ["import time"]
    for number, (cls, function) in enumerate([*_functions(module)]):
        beside = module.body if cls is None else cls.body
        drawn = zlib.crc32(ast.unparse(function).encode())
        usable = [each for each in switches if _fits(each.where, cls, function)]
        name = f"extra_{number}"
        switch = usable[drawn % len(usable)]
        before, test = around[drawn // 1000 % len(around)]
        words = {"name": name, **values}
        asked = switch.test.format(**words)
        setup = switch.setup.format(**words)
        start = _start(function)
        body = function.body[start:]
        if not body or (test == "" and before.startswith("if") and _yields(function)):
            continue
        for statement in body if values is _OFF else ():
            marked(statement)
        guarded: list[ast.stmt] = [ast.If(_expression(test.format(test=asked)), body, [])] if test else body
        function.body[start:] = [*_new(before.format(test=asked)), *_at(guarded, body[0])]
        if switch.where == "part":
            beside.insert(beside.index(function), _part_of(function, name, setup, cls))
        added += _set(switch.where, name, setup, cls, function)
        changed = True
    if changed:
        _put_first(module, "\n".join(added))
    return changed


def _set(where: str, name: str, setup: str, cls: ast.ClassDef | None, function: _Function) -> list[str]:
    """Write down what a switch is, and give what has to stand at the beginning of the file."""
    if where == "module":
        return [setup]
    if where == "function":
        function.body[_start(function) : _start(function)] = _new(setup)
    elif where == "parameter":
        _option(function, name, setup)
    elif cls is not None and where == "class":
        cls.body[len(cls.body) :] = _new(setup)
    elif cls is not None and where != "part":
        made = _constructor(cls)
        assert made is not None
        text = setup if where == "init" else f"self.{name} = {name if where == 'constructor' else setup}"
        if where == "constructor":
            _option(made, name, setup)
        if where == "setter":
            cls.body += _new(f"def use_{name}(self):\n    self.{name} = not {setup}")
        made.body[_after_super(made) : _after_super(made)] = _new(text)
    return []


def _fits(where: str, cls: ast.ClassDef | None, function: _Function) -> bool:
    if where == "part":
        given = function.args
        is_plain = not (given.vararg or given.kwarg or function.decorator_list or given.kwonlyargs)
        asks = any(isinstance(each, ast.Name) and each.id in ("super", "__class__") for each in ast.walk(function))
        return is_plain and not asks and not _yields(function) and isinstance(function, ast.FunctionDef)
    if where not in ("class", "init", "constructor", "setter"):
        return True
    if cls is None or not function.args.args or function.args.args[0].arg != "self":
        return False
    made = _constructor(cls)
    return where == "class" or (made is not None and made.args.args[0].arg == "self")


def _functions(module: ast.Module) -> Iterator[tuple[ast.ClassDef | None, _Function]]:
    for each in module.body:
        if isinstance(each, _Function) and not each.decorator_list:
            yield None, each
        for inner in each.body if isinstance(each, ast.ClassDef) else ():
            if isinstance(inner, _Function) and not inner.decorator_list and not _is_special(inner.name):
                yield each, inner  # type: ignore[misc]


def _is_special(name: str) -> bool:
    return name.startswith("__") and name not in ("__getitem__", "__call__", "__iter__")


def _constructor(cls: ast.ClassDef) -> ast.FunctionDef | None:
    found = [each for each in cls.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    if not found or any(isinstance(each, ast.Return) for each in ast.walk(found[0])):
        return None
    return found[0]


def _option(function: _Function, name: str, default: str) -> None:
    given = function.args
    if given.vararg or given.kwarg or given.kwonlyargs:
        given.kwonlyargs.append(ast.arg(name))
        given.kw_defaults.append(_expression(default))
    else:
        given.args.append(ast.arg(name))
        given.defaults.append(_expression(default))


def _part_of(function: _Function, name: str, default: str, cls: ast.ClassDef | None) -> _Function:
    """Leave nothing in a function but a call of a new one, in which its body stands."""
    given = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    part = copy.copy(function)
    part.args, part.name = copy.deepcopy(function.args), f"{function.name.strip('_')}_part"
    called = part.name if cls is None else f"{given.pop(0)}.{part.name}"
    _option(part, name, default)
    function.body = _new(f"return {called}({', '.join(given)})")
    return part


def _start(function: _Function) -> int:
    """Where the code of a function begins, after its text and what it declares."""
    at = 0
    for each in function.body:
        is_text = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
        if not is_text and not isinstance(each, (ast.Global, ast.Nonlocal)):
            break
        at += 1
    return at


def _after_super(made: ast.FunctionDef) -> int:
    at = [n + 1 for n, each in enumerate(made.body) if ast.unparse(each).partition("(self")[0].endswith(".__init__")]
    at += [n + 1 for n, each in enumerate(made.body) if ast.unparse(each).startswith("super(")]
    return max(at, default=_start(made))


def _yields(function: _Function) -> bool:
    return any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(function))


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _new(text: str) -> list[ast.stmt]:
    found = ast.parse(text).body
    for statement in found:
        for node in ast.walk(statement):
            if isinstance(node, (ast.stmt, ast.expr)):
                node.lineno = node.end_lineno = 0
    return found


def _at(statements: list[ast.stmt], place: ast.stmt) -> list[ast.stmt]:
    return [each if hasattr(each, "lineno") else ast.copy_location(each, place) for each in statements]


def _put_first(module: ast.Module, text: str) -> None:
    at = 0
    for each in module.body:
        is_text = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
        if not is_text and not (isinstance(each, ast.ImportFrom) and each.module == "__future__"):
            break
        at += 1
    module.body[at:at] = _new(text)
