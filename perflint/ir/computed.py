"""Expressions in the notation of summaries with their operators kept: what constants decide. Pure, over `ast`.

Beside the forms of `ir.summary`, where a part that is None is a value of which only its being an object is known:

- `("not", x)`, `("and", parts)`, `("or", parts)`
- `("if", test, value, otherwise)`
- `("compare", operator, left, right)`: `operator` as it is written, `"=="` or `"is not"`
- `("arithmetic", operator, left, right)`

Among the values of a name, `("covers", value)` says that a plain value stands for what one of the others tells better.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from perflint.ir.notation import MOST_LITERALS, constant, index_of, path_of
from perflint.ir.summary import Value

COVERS = "covers"
#: Values that the notation of summaries has no form for, or leaves the unknown parts out of.
COMPUTED = frozenset({ast.BoolOp, ast.IfExp, ast.Compare, ast.UnaryOp})
#: How deep expressions nest before they end in None, and how many parts of one are kept.
_DEEPEST = 6
_WIDEST = 12
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
}  # fmt: skip


def expression(node: ast.expr, depth: int = _DEEPEST) -> Value:
    """An expression with its operators, None where nothing of it is plain to see."""
    kind = type(node)
    if kind is ast.Name:
        return node.id  # type: ignore[attr-defined]
    if kind is ast.Constant:
        return constant(node.value)  # type: ignore[attr-defined]
    if depth <= 0:
        return None
    made = _FORMS.get(kind)
    return None if made is None else made(node, depth - 1)


def of_value(node: ast.expr) -> Value:
    """The expression of a value that is `COMPUTED`, where that tells more than its plain notation; None elsewhere.

    Plain notation leaves out the parts of a choice that it has no form for, so choices are always written down.
    """
    found = expression(node)
    return _UNKNOWN if found is None and type(node) in (ast.BoolOp, ast.IfExp) else found


#: Some object.
_UNKNOWN: Value = ("const", "object", None)


def _attribute(node: ast.Attribute, depth: int) -> Value:
    path = path_of(node)
    if path is not None:
        return path
    base = expression(node.value, depth)
    return None if base is None else ("attr", base, node.attr)


def _bool(node: ast.BoolOp, depth: int) -> Value:
    parts = tuple([expression(item, depth) for item in node.values[:_WIDEST]])
    if len(node.values) > _WIDEST:
        parts += (None,)
    form = "and" if type(node.op) is ast.And else "or"
    return (form, parts) if any(part is not None for part in parts) else None


def _unary(node: ast.UnaryOp, depth: int) -> Value:
    operand = expression(node.operand, depth)
    if type(node.op) is ast.Not:
        return None if operand is None else ("not", operand)
    if type(node.op) is ast.USub and type(operand) is tuple and operand[:2] == ("const", "int"):
        return None if operand[2] is None else ("const", "int", -operand[2])
    return None


def _compare(node: ast.Compare, depth: int) -> Value:
    left = expression(node.left, depth)
    if len(node.ops) > _WIDEST:
        return None
    parts = []
    for op, other in zip(node.ops, node.comparators):
        right = expression(other, depth)
        told = left is not None and right is not None
        parts.append(("compare", _COMPARED[type(op)], left, right) if told else None)
        left = right
    if len(parts) == 1:
        return parts[0]
    return ("and", tuple(parts)) if any(parts) else None


def _conditional(node: ast.IfExp, depth: int) -> Value:
    arms = expression(node.body, depth), expression(node.orelse, depth)
    return None if arms == (None, None) else ("if", expression(node.test, depth), *arms)


def _arithmetic(node: ast.BinOp, depth: int) -> Value:
    operator = _ARITHMETIC.get(type(node.op))
    if operator is None:
        return None
    left = expression(node.left, depth)
    right = expression(node.right, depth) if left is not None else None
    return None if right is None else ("arithmetic", operator, left, right)


def _call(node: ast.Call, depth: int) -> Value:
    func = expression(node.func, depth)
    if func is None:
        return None
    args = tuple([None if type(item) is ast.Starred else expression(item, depth) for item in node.args[:_WIDEST]])
    keywords = tuple([(item.arg or "", expression(item.value, depth)) for item in node.keywords[:_WIDEST]])
    return ("call", func, args, keywords)


def _item(node: ast.Subscript, depth: int) -> Value:
    base = expression(node.value, depth)
    return None if base is None else ("item", base, index_of(node.slice))


def _sequence(node: ast.Tuple | ast.List | ast.Set, depth: int) -> Value:
    items: tuple[Value, ...] = tuple([expression(item, depth) for item in node.elts[:MOST_LITERALS]])
    return ("seq", items if len(node.elts) <= MOST_LITERALS else (*items, None))


def _named(node: ast.NamedExpr | ast.Await, depth: int) -> Value:
    return expression(node.value, depth)


_FORMS: dict[type, Callable[..., Value]] = {
    ast.Attribute: _attribute,
    ast.BoolOp: _bool,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.BinOp: _arithmetic,
    ast.Call: _call,
    ast.Subscript: _item,
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Set: _sequence,
    ast.NamedExpr: _named,
}


def written(plain: Iterable[Value], computed: Iterable[Value]) -> list[Value]:
    """All values of a name: the computed ones, and the plain ones that none of them tells better."""
    computed = list(computed)
    covered = {item[1] for item in computed if type(item) is tuple and item[0] == COVERS}
    told = [item for item in computed if type(item) is not tuple or item[0] != COVERS]
    return told + [item for item in plain if item not in covered]
