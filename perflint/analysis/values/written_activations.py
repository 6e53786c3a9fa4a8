"""Activations that are written out: `x * torch.sigmoid(x)`, `0.5 * x * (1 + torch.erf(x / math.sqrt(2)))`.

Expressions are brought into a normal form, sums of products of powers, so that the order of factors, the spelling of
constants and intermediate names do not matter.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import EXTERNAL_INSTANCE
from perflint.ir.calls import argument, callee_name, keyword
from perflint.syntax.bindings import Binding
from perflint.torch_model.names import canonical

#: What is multiplied, by power: names, and functions of expressions.
_Product: TypeAlias = "tuple[tuple[object, int], ...]"
#: What a sum consists of, by factor.
_Sum: TypeAlias = "dict[_Product, float]"

#: Functions, and methods of the same name, by what they compute.
_FUNCTIONS = {
    "sigmoid": "sigmoid",
    "erf": "erf",
    "tanh": "tanh",
    "softplus": "softplus",
    "relu6": "relu6",
    "exp": "exp",
    "log": "log",
    "log1p": "log1p",
}
_MODULES = {
    "torch.nn.Sigmoid": "sigmoid",
    "torch.nn.Tanh": "tanh",
    "torch.nn.Softplus": "softplus",
    "torch.nn.ReLU6": "relu6",
}
_LIBRARIES = ("torch", "torch.nn.functional", "torch.special")
#: Names of calls that such an expression is found by.
INNER_NAMES = ("sigmoid", "erf", "tanh", "relu6", "relu", "hardtanh", "clamp")
_ROOTS = ("math.sqrt", "numpy.sqrt", "torch.sqrt")
_PI = ("math.pi", "numpy.pi", "torch.pi")
_DEEP = 4
#: Digits in which constants have to agree: 0.7979 stands for `sqrt(2 / pi)`.
_DIGITS = 3
_HIGHEST_POWER = 3


class Activation(NamedTuple):
    """`node` computes it of `of`: `call` has the function's name, and `{}` for the text of `of`. It takes `kernels`
    element by element, where the function takes one, and has been there `since` a version of torch. What `is_whole` has
    no names of its own for parts of it.
    """

    node: ast.expr
    of: ast.expr
    call: str
    kernels: int
    since: tuple[int, int]
    is_whole: bool


class _Known(NamedTuple):
    text: str
    call: str
    kernels: int
    since: tuple[int, int]


_KNOWN = (
    _Known("x * sigmoid(x)", "silu({})", 2, (1, 7)),
    _Known("x * 0.5 * (1 + erf(x * 0.70710678))", "gelu({})", 5, (1, 4)),
    _Known("x * 0.5 * (1 + tanh(0.79788456 * (x + 0.044715 * x**3)))", 'gelu({}, approximate="tanh")', 8, (1, 12)),
    _Known("x * tanh(softplus(x))", "mish({})", 3, (1, 9)),
    _Known("x * relu6(x + 3) / 6", "hardswish({})", 4, (1, 6)),
    _Known("relu6(x + 3) / 6", "hardsigmoid({})", 3, (1, 5)),
)


def activation_around(call: ast.Call, ctx: FileFacts) -> Activation | None:
    """The widest expression around a call, or around where its result is read, that is an activation of one tensor."""
    if _function_of(call, ctx) is None and _clamped(call, ctx) is None:
        return None
    found = None
    for node in _outwards(call, ctx, 2):
        known = _as_known(node, ctx)
        if known is not None:
            found = known
    return found


def _outwards(node: ast.expr, ctx: FileFacts, names: int) -> Iterator[ast.expr]:
    """The arithmetic around an expression, innermost first; and that around the one place that reads its name."""
    around: ast.expr | None = node
    while around is not None:
        node, around = around, _arithmetic_around(around, ctx)
        yield node
    statement = ctx.tree.parent(node)
    if names and isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, function = statement.targets[0], ctx.tree.function_of(statement)
        if isinstance(target, ast.Name) and function is not None:
            for use in ctx.tree.named(target.id, function):
                outer = _arithmetic_around(use, ctx)
                if outer is not None and isinstance(use.ctx, ast.Load) and _made(use, ctx) is node:
                    yield from _outwards(outer, ctx, names - 1)


def _arithmetic_around(node: ast.expr, ctx: FileFacts) -> ast.expr | None:
    outer = ctx.tree.parent(node)
    if isinstance(outer, ast.BinOp):
        return outer
    if isinstance(outer, ast.Attribute) and outer.attr in ("mul", "div"):
        outer = ctx.tree.parent(outer)
    return outer if isinstance(outer, ast.Call) and callee_name(outer) in ("mul", "div") else None


def _as_known(node: ast.expr, ctx: FileFacts) -> Activation | None:
    reader = _Reader(ctx)
    found = reader.sum_of(node)
    if found is None or len(reader.tensors) != 1:
        return None
    ((name, of),) = reader.tensors.items()
    for known in _KNOWN:
        if _normal(found) == _normal(_template(known.text, name)):
            return Activation(node, of, known.call, known.kernels, known.since, not reader.has_names)
    return None


@lru_cache(maxsize=256)
def _template(text: str, name: object) -> _Sum:
    found = _Plain(name).sum_of(ast.parse(text, mode="eval").body)
    assert found is not None
    return found


def _normal(value: _Sum) -> frozenset[tuple[_Product, float]]:
    return frozenset((product, float(f"{factor:.{_DIGITS}g}")) for product, factor in value.items() if factor)


class _Plain:
    """Reads the templates: one name, functions and numbers."""

    def __init__(self, name: object) -> None:
        self._name = name

    def sum_of(self, node: ast.expr) -> _Sum | None:
        if isinstance(node, ast.BinOp):
            return self._operation(node.op, node.left, node.right)
        if isinstance(node, ast.UnaryOp):
            inner = self.sum_of(node.operand)
            return _scaled(inner, -1.0) if inner is not None and isinstance(node.op, ast.USub) else None
        if isinstance(node, ast.Constant):
            is_number = isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
            return {(): float(node.value)} if is_number else None  # type: ignore[arg-type]
        return self._call(node) if isinstance(node, ast.Call) else self._leaf(node)

    def _leaf(self, _: ast.expr) -> _Sum | None:
        return {((self._name, 1),): 1.0}

    def _call(self, node: ast.Call) -> _Sum | None:
        return self._applied(callee_name(node), node.args[0])

    def _applied(self, function: str, value: ast.expr) -> _Sum | None:
        inner = self.sum_of(value)
        if inner is None:
            return None
        return {(((function, _normal(inner)), 1),): 1.0}

    def _operation(self, op: ast.operator, left: ast.expr, right: ast.expr) -> _Sum | None:
        one, other = self.sum_of(left), self.sum_of(right)
        if one is None or other is None:
            return None
        number = _number(other)
        if isinstance(op, ast.Add):
            return _added(one, other)
        if isinstance(op, ast.Sub):
            return _added(one, _scaled(other, -1.0))
        if isinstance(op, ast.Mult):
            return _product(one, other)
        if isinstance(op, ast.Div):
            return _scaled(one, 1.0 / number) if number else None
        return _power(one, number) if isinstance(op, ast.Pow) and number is not None else None


class _Reader(_Plain):
    """Reads the expressions of a file, and notes which tensors they are of."""

    def __init__(self, ctx: FileFacts) -> None:
        super().__init__(None)
        self._ctx = ctx
        self._depth = _DEEP
        #: By what names them, where one is read.
        self.tensors: dict[object, ast.expr] = {}
        self.has_names = False

    def _leaf(self, node: ast.expr) -> _Sum | None:
        if self._ctx.target(node) in _PI:
            return {(): math.pi}
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        made = _made(node, self._ctx) if isinstance(node, ast.Name) else None
        if made is not None and self._depth and isinstance(made, (ast.BinOp, ast.Constant, ast.Call)):
            before, self._depth = dict(self.tensors), self._depth - 1
            found = self.sum_of(made)
            self._depth += 1
            if found is not None:
                self.has_names = True
                return found
            self.tensors = before
        name = (self._ctx.text(node), _definitions(node, self._ctx))
        self.tensors.setdefault(name, node)
        return {((name, 1),): 1.0}

    def _call(self, node: ast.Call) -> _Sum | None:
        ctx, name = self._ctx, callee_name(node)
        if ctx.is_call_of(node, *_ROOTS) and node.args:
            inner = self.sum_of(node.args[0])
            number = _number(inner) if inner is not None else None
            return {(): math.sqrt(number)} if number is not None and number >= 0 else None
        if ctx.is_call_of(node, "torch.tensor") and node.args:
            inner = self.sum_of(node.args[0])
            return inner if inner is not None and _number(inner) is not None else None
        if name in ("mul", "div", "pow"):
            operands = _operands(node, f"torch.{name}", ctx)
            op = {"mul": ast.Mult, "div": ast.Div, "pow": ast.Pow}[name]
            return self._operation(op(), *operands) if operands is not None else None
        clamped = _clamped(node, ctx)
        if clamped is not None:
            return self._applied("relu6", clamped)
        known = _function_of(node, ctx)
        if known is None:
            return None
        function, value = known
        if function in ("log", "log1p"):
            return self._softplus(function, value)
        return self._applied(function, value)

    def _softplus(self, function: str, value: ast.expr) -> _Sum | None:
        """`log(1 + exp(x))`, `log1p(exp(x))`"""
        inner = self.sum_of(value)
        if inner is not None and function == "log1p":
            inner = _added(inner, {(): 1.0})
        if inner is None or inner.pop((), None) != 1.0 or list(inner.values()) != [1.0]:
            return None
        (product,) = inner
        if len(product) != 1 or product[0][1] != 1:
            return None
        applied = product[0][0]
        is_exp = isinstance(applied, tuple) and applied[0] == "exp"
        return {((("softplus", applied[1]), 1),): 1.0} if is_exp else None  # type: ignore[index]


def _number(value: _Sum) -> float | None:
    return value.get((), 0.0) if not any(value) else None


def _added(one: _Sum, other: _Sum) -> _Sum:
    found = dict(one)
    for product, factor in other.items():
        found[product] = found.get(product, 0.0) + factor
    return found


def _scaled(value: _Sum, by: float) -> _Sum:
    return {product: factor * by for product, factor in value.items()}


def _product(one: _Sum, other: _Sum) -> _Sum:
    found: _Sum = {}
    for left, a in one.items():
        for right, b in other.items():
            powers = dict(left)
            for part, power in right:
                powers[part] = powers.get(part, 0) + power
            key = tuple(sorted(powers.items(), key=repr))
            found[key] = found.get(key, 0.0) + a * b
    return found


def _power(value: _Sum, exponent: float) -> _Sum | None:
    number = _number(value)
    if number is not None and (number > 0 or exponent == int(exponent)):
        return {(): number**exponent} if number or exponent > 0 else None
    if exponent not in range(1, _HIGHEST_POWER + 1):
        return None
    found = value
    for _ in range(int(exponent) - 1):
        found = _product(found, value)
    return found


def _operands(node: ast.Call, function: str, ctx: FileFacts) -> tuple[ast.expr, ast.expr] | None:
    if ctx.is_call_of(node, function):
        return (node.args[0], node.args[1]) if len(node.args) == 2 else None
    if isinstance(node.func, ast.Attribute) and len(node.args) == 1 and not node.keywords:
        return node.func.value, node.args[0]
    return None


def _clamped(node: ast.Call, ctx: FileFacts) -> ast.expr | None:
    """`x` of `x.clamp(0, 6)` and `F.hardtanh(x, 0, 6)`."""
    name = callee_name(node)
    if name not in ("clamp", "clip", "hardtanh"):
        return None
    is_whole = ctx.is_call_of(node, "torch.clamp", "torch.clip", "torch.nn.functional.hardtanh")
    if not is_whole and (name == "hardtanh" or not isinstance(node.func, ast.Attribute)):
        return None
    first = 1 if is_whole else 0
    bounds = [
        argument(node, first + place, word) or keyword(node, f"{word}_val") for place, word in enumerate(("min", "max"))
    ]
    if [bound.value if isinstance(bound, ast.Constant) else None for bound in bounds] != [0, 6]:
        return None
    return node.args[0] if is_whole else node.func.value  # type: ignore[attr-defined]


def _function_of(node: ast.Call, ctx: FileFacts) -> tuple[str, ast.expr] | None:
    """What a call computes, and of what; a module of the library, kept under any name, is called as well."""
    name = callee_name(node)
    function = _FUNCTIONS.get(name)
    if function is not None:
        if ctx.is_call_of(node, *(f"{library}.{name}" for library in _LIBRARIES)):
            return (function, node.args[0]) if node.args else None
        if not node.args and isinstance(node.func, ast.Attribute) and ctx.target(node.func) is None:
            return function, node.func.value
    refs = ctx.refs(node.func) if len(node.args) == 1 else ()
    made = {_MODULES.get(canonical(ref.name)) if ref.kind == EXTERNAL_INSTANCE else None for ref in refs}
    only = made.pop() if len(made) == 1 else None
    return (only, node.args[0]) if only is not None else None


def _made(name: ast.expr, ctx: FileFacts) -> ast.expr | None:
    """The one expression whose value a name has."""
    if not isinstance(name, ast.Name):
        return None
    made = ctx.inference.flow.definitions(name)
    is_one = len(made) == 1 and made[0].binding is Binding.ASSIGN and not made[0].path
    return made[0].value if is_one else None


def _definitions(node: ast.expr, ctx: FileFacts) -> tuple[int, ...]:
    """What tells two tensors of one name apart."""
    return tuple(sorted(map(id, ctx.inference.flow.definitions(node)))) if isinstance(node, ast.Name) else ()


__all__ = ["INNER_NAMES", "Activation", "activation_around"]
