"""Other things that hold a value on its way: the company of another one, what a module gives in a box, the terms of a
loss in a mapping.
"""

from __future__ import annotations

import ast
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from . import keeps
from .models import _MOVES, _module_classes
from .values import _Function, _functions, _put_on_top

_BOX = """
import dataclasses as _dataclasses
from typing import Any as _Any

@_dataclasses.dataclass
class _Box:
    value: _Any
"""
#: Ways to give a value on: what makes a box of it, and what takes it out again.
_GIVEN = {
    "dict": ("{'value': _value}", "_call['value']"),
    "data": ("_Box(_value)", "_call.value"),
    "list": ("[_value, None]", "_call[0]"),
}
#: Ways to give a name a value in the company of another.
_TAKEN = {"first": "{name}, _ = _value, None", "last": "_, {name} = None, _value"}
#: What sees the names of the function that it stands in.
_SEES_NAMES = {"locals", "vars", "eval", "exec", "super", "__class__"}
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_Write = Callable[[ast.Assign, str, str], list[ast.stmt]]


@keeps
def locals_in_pairs(module: ast.Module) -> bool:
    """`x, _ = EXPR, None`, or `_, x = None, EXPR`, by the name and its line."""

    def written(each: ast.Assign, name: str, function: str) -> list[ast.stmt]:
        text = _TAKEN[_form(_TAKEN, f"{function} {each.lineno} {name}")]
        made = ast.parse(text.format(name=name)).body[0]
        return [ast.copy_location(_Reads("_value", each.value).visit(made), each)]

    return _locals(module, written)


@keeps
def losses_in_a_dict(module: ast.Module) -> bool:
    """`losses = {"a": A, "b": B}` and the sum of its values for `loss = A + B`, where there is `loss.backward()`."""
    called = [each.func for each in ast.walk(module) if isinstance(each, ast.Call)]
    walked = [func.value for func in called if isinstance(func, ast.Attribute) and func.attr == "backward"]
    names = {each.id for each in walked if isinstance(each, ast.Name)}

    def written(each: ast.Assign, name: str, function: str) -> list[ast.stmt]:
        if name not in names or not isinstance(each.value, (ast.BinOp, ast.Call)):
            return [each]
        terms = _terms(each.value)
        each.value = ast.Dict([ast.Constant(f"{name}_{i}") for i in range(len(terms))], terms)
        each.targets = [ast.Name(f"{name}_terms", ast.Store())]
        return [each, ast.copy_location(ast.parse(f"{name} = sum({name}_terms.values())").body[0], each)]

    return _locals(module, written)


@keeps
def outputs_in_boxes(module: ast.Module) -> bool:
    """Modules of the file give `{"value": EXPR}`, a list or a dataclass, by the name and line of the class, and who
    calls them takes it out.
    """
    taken: dict[ast.Call, str] = {}
    for name, cls in _module_classes(module).items():
        forward = next(
            (each for each in cls.body if isinstance(each, ast.FunctionDef) and each.name == "forward"), None
        )
        if forward is None or forward.decorator_list or not isinstance(forward.body[-1], ast.Return):
            continue
        returns = [each for each in _own(forward) if isinstance(each, ast.Return)]
        calls = _Calls(module).of(name) if all(each.value for each in returns) else []
        if not calls:
            continue
        form = _GIVEN[_form(_GIVEN, f"{name} {cls.lineno}")]
        forward.returns = None
        for each in returns:
            assert each.value is not None
            each.value = _filled(form[0], "_value", each.value)
        taken |= dict.fromkeys(calls, form[1])

    class Taker(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            self.generic_visit(node)
            return _filled(taken[node], "_call", node) if node in taken else node

    if taken:
        Taker().visit(module)
        _put_on_top(module, ast.parse(_BOX).body)
    return bool(taken)


def _form(forms: Mapping[str, object], what: str) -> str:
    return sorted(forms)[zlib.crc32(what.encode()) % len(forms)]


def _filled(text: str, name: str, value: ast.expr) -> ast.expr:
    """An expression with a value in the place of a name."""
    made = _Reads(name, value).visit(ast.parse(text, mode="eval").body)
    assert isinstance(made, ast.expr)
    return made


def _terms(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        return [*_terms(value.left), *_terms(value.right)]
    return [value]


class _Reads(ast.NodeTransformer):
    def __init__(self, name: str, read: ast.expr) -> None:
        self.name, self.read = name, read

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.read if node.id == self.name else node


# Locals.


def _locals(module: ast.Module, write: _Write) -> bool:
    """Write anew where a local is given its only value, of functions that keep their names to themselves."""
    changed = False
    for function in _functions(module):
        once = _bound_once(function)
        for block in _blocks(function):
            for each in [*block]:
                match each:
                    case ast.Assign([ast.Name(name)], value) if name in once and not _suspends(value):
                        new = write(each, name, function.name)
                        changed |= new != [each]
                        at = block.index(each)
                        block[at : at + 1] = new
    return changed


def _bound_once(function: _Function) -> set[str]:
    """The names that a function binds in one place for itself; none where it has a use for `_`."""
    own = [*_own(function)]
    names = [each for each in own if isinstance(each, ast.Name)]
    if {each.id for each in names} & {*_SEES_NAMES, "_"} or _is_scripted(function):
        return set()
    stored = Counter(each.id for each in names if not isinstance(each.ctx, ast.Load))
    loaded = {each.id for each in names if isinstance(each.ctx, ast.Load)}
    shared = {name for each in own if isinstance(each, (ast.Global, ast.Nonlocal)) for name in each.names}
    inner = {part.id for each in own if isinstance(each, _SCOPES) for part in ast.walk(each) if hasattr(part, "id")}
    given = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    return {name for name, times in stored.items() if times == 1} & loaded - shared - inner - given


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """What is part of a function itself, definitions in it without what they hold."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, _SCOPES):
            yield from _own(child)


def _blocks(function: _Function) -> Iterator[list[ast.stmt]]:
    for node in [function, *(each for each in _own(function) if not isinstance(each, _SCOPES))]:
        for field in ("body", "orelse", "finalbody"):
            if isinstance(block := getattr(node, field, None), list):
                yield block


def _suspends(value: ast.expr) -> bool:
    return any(isinstance(one, (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)) for one in ast.walk(value))


def _is_scripted(function: _Function) -> bool:
    """Whether another language than Python is read from a function's text."""
    return any(word in ast.unparse(each) for each in function.decorator_list for word in ("jit", "script"))


# Calls of modules.


class _Calls:
    """The calls of the modules of a class, through names, attributes and parameters that hold nothing else."""

    def __init__(self, module: ast.Module) -> None:
        self.nodes = [*ast.walk(module)]
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self.functions = {each.name: each for each in module.body if isinstance(each, ast.FunctionDef)}
        self.elsewhere: frozenset[str] = getattr(module, "imported_elsewhere", frozenset())

    def of(self, name: str) -> list[ast.Call]:
        """All of them; none where there may be one that is not seen."""
        if self.elsewhere & {name, *self.functions}:
            return []
        made = [self.parents[each] for each in self.nodes if isinstance(each, ast.Name) and each.id == name]
        waiting = [each for each in made if isinstance(each, ast.Call) and _key(each.func) == name]
        if len(waiting) < len(made):
            return []
        found: list[ast.Call] = []
        held: Counter[str] = Counter()
        values: list[ast.expr] = [*waiting]
        while values:
            value = values.pop()
            step = self._step(value)
            if step is None:
                return []
            if isinstance(step, str):
                values += self._loads(step) if step not in held else []
                held[step] += 1
            elif isinstance(step, ast.Call) and step.func is value:
                found.append(step)
            elif step is not value:
                values.append(step)
        return found if all(self._holds_nothing_else(key, times) for key, times in held.items()) else []

    def _step(self, value: ast.expr) -> str | ast.expr | None:
        """What comes to hold a module: a key, or what wraps or moves it. The value itself where it goes no further, and
        None where nobody can say. A call of it is that call.
        """
        outer = self.parents[value]
        if isinstance(outer, ast.Assign) and len(outer.targets) == 1:
            return _key(outer.targets[0]) or None
        if isinstance(outer, ast.Attribute):
            call = self.parents[outer]
            if outer.attr in _MOVES and isinstance(call, ast.Call):
                return value if isinstance(self.parents[call], ast.Expr) else call
            return None if outer.attr in ("forward", "__call__", "apply") else value
        if not isinstance(outer, ast.Call):
            return None
        if outer.func is value or ast.unparse(outer.func).endswith(("Parallel", "compile", "deepcopy")):
            return outer
        function = self.functions.get(_key(outer.func))
        place = outer.args.index(value) if value in outer.args else -1
        if function is None or function.decorator_list or not 0 <= place < len(function.args.args):
            return None
        return function.args.args[place].arg

    def _loads(self, key: str) -> list[ast.expr]:
        found = (each for each in self.nodes if isinstance(each, (ast.Name, ast.Attribute)) and _key(each) == key)
        return [each for each in found if isinstance(each.ctx, ast.Load)]

    def _holds_nothing_else(self, key: str, times: int) -> bool:
        """Whether a name, a parameter or an attribute is given what it holds so many times in all."""
        named = [each for each in self.nodes if isinstance(each, (ast.Name, ast.Attribute)) and _key(each) == key]
        stores = sum(not isinstance(each.ctx, ast.Load) for each in named)
        params = [each for each in self.nodes if isinstance(each, ast.arg) and each.arg == key]
        if not params:
            return stores == times
        takers = [each for each in self.functions.values() if params[0] in each.args.args]
        if stores or len(params) > 1 or not takers:
            return False
        return sum(isinstance(each, ast.Name) and each.id == takers[0].name for each in self.nodes) == times


def _key(node: ast.AST) -> str:
    """What all variables, or all attributes, of one name of a file are told by."""
    if isinstance(node, ast.Name):
        return node.id
    return f".{node.attr}" if isinstance(node, ast.Attribute) else ""
