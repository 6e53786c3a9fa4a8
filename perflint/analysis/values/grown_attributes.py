"""Attributes that a method joins to what it is given, call by call: the state of a metric, or a buffer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.phases import TAKES_NEXT
from perflint.ir.calls import callee_name, is_constant
from perflint.syntax.walk import walk

#: Methods that begin anew with nothing: an object that has one is filled up again and again.
_EMPTIES = frozenset({"reset", "clear", "_reset", "_clear", "reset_states", "reset_state"})
_STARTS = _EMPTIES | {"__init__"}
#: What begins with nothing when it is given nothing, and what when it is given no rows.
_OF_VALUES = frozenset("tensor as_tensor Tensor FloatTensor LongTensor IntTensor BoolTensor array asarray".split())
_OF_SIZES = frozenset({"empty", "zeros", "ones"})
_CONVERTS = frozenset("to cuda cpu float double long int bool half type".split())
#: What asks for the size or the type of the attribute, not for its values.
_SIZES = frozenset("shape size dim ndim ndimension numel nelement device dtype".split())
_LIKE = frozenset({"to", "type_as", "len"})
#: What must stand in the text of such a class, where it is a metric.
WRITTEN_IN_METRICS = ("def reset(", "def clear(", "def _reset(", "def _clear(", "def reset_state", "add_state(")


class GrownAttribute(NamedTuple):
    """`self.name = call(...)` joins `self.name` and `new` on each call of `method`."""

    call: ast.Call
    name: str
    new: str
    method: str


def grown_attributes(cls: ast.ClassDef, ctx: FileFacts, joins: tuple[str, ...]) -> Iterator[GrownAttribute]:
    """The attributes of a class that begin empty and of which nothing is ever dropped until they begin anew."""
    methods = [item for item in cls.body if isinstance(item, ast.FunctionDef)]
    emptied = _begun_empty(methods)
    if not emptied:
        return
    for method in methods:
        if not TAKES_NEXT.match(method.name):
            continue
        for statement in walk(method):
            grown = _grown(statement, method, ctx, joins)
            if grown is not None and grown.name in emptied and _only_grows(grown, methods):
                yield grown


def _begun_empty(methods: list[ast.FunctionDef]) -> set[str]:
    """The attributes that some method empties, and those that torchmetrics does."""
    found = set()
    for method in methods:
        for part in walk(method):
            name = _own_attribute(_target(part))
            if name and method.name in _EMPTIES and isinstance(part, ast.Assign) and _is_nothing(part.value):
                found.add(name)
            if isinstance(part, ast.Call) and callee_name(part) == "add_state" and (state := _state(part)):
                found.add(state)
    return found


def _state(call: ast.Call) -> str:
    """The name in `self.add_state("seen", torch.tensor([]), ...)`."""
    given = {item.arg: item.value for item in call.keywords}
    name = call.args[0] if call.args else given.get("name")
    default = call.args[1] if len(call.args) > 1 else given.get("default")
    if not isinstance(name, ast.Constant) or default is None or not _is_nothing(default):
        return ""
    return str(name.value)


def _is_nothing(value: ast.expr) -> bool:
    """`torch.tensor([])`, `torch.Tensor()`, `torch.empty(0, 4)`, `np.zeros((0, 4))`, each moved or converted."""
    if not isinstance(value, ast.Call):
        return False
    name, first = callee_name(value), value.args[0] if value.args else None
    if name in _CONVERTS and isinstance(value.func, ast.Attribute):
        return _is_nothing(value.func.value)
    if name in _OF_VALUES:
        return first is None or (isinstance(first, (ast.List, ast.Tuple)) and not first.elts)
    if name in _OF_SIZES and first is not None:
        rows = first.elts[0] if isinstance(first, (ast.List, ast.Tuple)) and first.elts else first
        return is_constant(rows, 0)
    return False


def _grown(
    statement: ast.AST, method: ast.FunctionDef, ctx: FileFacts, joins: tuple[str, ...]
) -> GrownAttribute | None:
    name = _own_attribute(_target(statement))
    value = statement.value if isinstance(statement, ast.Assign) else None
    if not name or not isinstance(value, ast.Call) or not value.args:
        return None
    parts = value.args[:2] if ctx.is_call_of(value, "numpy.append") else getattr(value.args[0], "elts", ())
    if not ctx.is_call_of(value, "numpy.append", *joins) or len(parts) < 2:
        return None
    added = [part for part in parts if _own_attribute(part) != name]
    if len(added) != len(parts) - 1 or any(_own_attribute(part) == name for item in added for part in walk(item)):
        return None
    return GrownAttribute(value, name, ", ".join(map(ctx.text, added)), method.name)


def _only_grows(grown: GrownAttribute, methods: list[ast.FunctionDef]) -> bool:
    """Whether all that is done to the attribute is to empty it and to join to it, and the method that does asks no more
    of it than how large it is, or what it holds when it has the first part only.
    """
    for method in methods:
        for part in walk(method):
            if _own_attribute(_target(part)) == grown.name and not (
                (isinstance(part, ast.Assign) and (part.value is grown.call or _is_nothing(part.value)))
                or method.name in _STARTS
            ):
                return False
        if method.name == grown.method and _reads_values(method, grown):
            return False
    called = {_own_attribute(part.func) for part in walk(_named(grown.method, methods)) if isinstance(part, ast.Call)}
    return not any(method.name in called - _STARTS and _reads_values(method, grown) for method in methods)


def _named(name: str, methods: list[ast.FunctionDef]) -> ast.FunctionDef:
    return next(method for method in methods if method.name == name)


def _reads_values(method: ast.FunctionDef, grown: GrownAttribute) -> bool:
    harmless = {id(part) for part in walk(grown.call)}
    for part in walk(method):
        if isinstance(part, ast.Attribute) and part.attr in _SIZES:
            harmless.add(id(part.value))
        elif isinstance(part, ast.Call) and callee_name(part) in _LIKE:
            harmless.update(map(id, part.args))
        elif isinstance(part, ast.If) and any(_asks_for_size(item) for item in walk(part.test)):
            harmless.update(id(item) for statement in part.body for item in walk(statement))
    return any(
        _own_attribute(part) == grown.name and isinstance(part.ctx, ast.Load) and id(part) not in harmless
        for part in walk(method)
        if isinstance(part, ast.Attribute)
    )


def _asks_for_size(part: ast.AST) -> bool:
    return isinstance(part, ast.Attribute) and part.attr in _SIZES and _own_attribute(part.value) != ""


def _target(statement: ast.AST) -> ast.AST | None:
    """What a statement binds or changes, where it is one thing."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: ast.AST = statement.targets[0]
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        target = statement.target
    else:
        return None
    return target.value if isinstance(target, ast.Subscript) else target


def _own_attribute(node: ast.AST | None) -> str:
    """The name in `self.name`, else nothing."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return ""
