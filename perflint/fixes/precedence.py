"""When an expression needs parentheses: how tightly it binds, and what its place in the text asks for."""

from __future__ import annotations

import ast
import enum


class Binding(enum.IntEnum):
    """Loosest first, as in Python's grammar."""

    BARE = enum.auto()  # `a, b`, `yield x`, a generator without parentheses
    NAMED = enum.auto()
    TEST = enum.auto()  # lambda, conditional
    OR = enum.auto()
    AND = enum.auto()
    NOT = enum.auto()
    COMPARE = enum.auto()
    BIT_OR = enum.auto()
    BIT_XOR = enum.auto()
    BIT_AND = enum.auto()
    SHIFT = enum.auto()
    SUM = enum.auto()
    TERM = enum.auto()
    FACTOR = enum.auto()
    POWER = enum.auto()
    AWAIT = enum.auto()
    NUMBER = enum.auto()  # an atom, but `1.real` is none
    ATOM = enum.auto()

    @property
    def tighter(self) -> Binding:
        return Binding(min(self + 1, Binding.ATOM))


_OPERATORS: dict[type[ast.AST], Binding] = {
    ast.Or: Binding.OR,
    ast.And: Binding.AND,
    ast.BitOr: Binding.BIT_OR,
    ast.BitXor: Binding.BIT_XOR,
    ast.BitAnd: Binding.BIT_AND,
    ast.LShift: Binding.SHIFT,
    ast.RShift: Binding.SHIFT,
    ast.Add: Binding.SUM,
    ast.Sub: Binding.SUM,
    ast.Mult: Binding.TERM,
    ast.MatMult: Binding.TERM,
    ast.Div: Binding.TERM,
    ast.FloorDiv: Binding.TERM,
    ast.Mod: Binding.TERM,
    ast.Pow: Binding.POWER,
    ast.Not: Binding.NOT,
    ast.UAdd: Binding.FACTOR,
    ast.USub: Binding.FACTOR,
    ast.Invert: Binding.FACTOR,
}
_NODES: dict[type[ast.AST], Binding] = {
    ast.Yield: Binding.BARE,
    ast.YieldFrom: Binding.BARE,
    ast.Starred: Binding.BARE,
    ast.NamedExpr: Binding.NAMED,
    ast.Lambda: Binding.TEST,
    ast.IfExp: Binding.TEST,
    ast.Compare: Binding.COMPARE,
    ast.Await: Binding.AWAIT,
}


def binding_of(node: ast.expr) -> Binding:
    """How tightly an expression binds by itself; displays, tuples and generators are taken to have their brackets."""
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.BoolOp)):
        return _OPERATORS[type(node.op)]
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, complex)) and node.value is not True:
        return Binding.ATOM if node.value is False else Binding.NUMBER
    return _NODES.get(type(node), Binding.ATOM)


def binding_of_text(text: str) -> Binding:
    """How tightly the expression written as `text` binds. What this Python cannot parse is taken to bind loosely."""
    try:
        node = ast.parse(f"({text}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Binding.TEST
    if isinstance(node, (ast.Tuple, ast.GeneratorExp)):
        # The parentheses put around it became the node's own only if it had none.
        return Binding.ATOM if (node.lineno, node.col_offset) > (1, 0) else Binding.BARE
    start = (node.lineno, node.col_offset)
    return binding_of(node) if start == (1, 1) else Binding.ATOM


def spans_lines(text: str) -> bool:
    """Whether `text` is an expression only between brackets, because a line ends within it."""
    if "\n" not in text:
        return False
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return False


def needed_at(node: ast.AST, parent: ast.AST | None) -> Binding:
    """How tightly an expression in the place of `node`, a child of `parent`, has to bind."""
    if isinstance(parent, (ast.Attribute, ast.Subscript, ast.Call)):
        trailed = parent.func if isinstance(parent, ast.Call) else parent.value
        if trailed is node:
            return Binding.ATOM
        return Binding.TEST
    if isinstance(parent, ast.Await):
        return Binding.NUMBER
    if isinstance(parent, ast.BinOp):
        own = _OPERATORS[type(parent.op)]
        if isinstance(parent.op, ast.Pow):
            return Binding.AWAIT if parent.left is node else Binding.FACTOR
        return own if parent.left is node else own.tighter
    if isinstance(parent, ast.UnaryOp):
        return _OPERATORS[type(parent.op)]
    if isinstance(parent, ast.BoolOp):
        return _OPERATORS[type(parent.op)].tighter
    if isinstance(parent, (ast.Compare, ast.Starred)) or (isinstance(parent, ast.Dict) and None in parent.keys):
        return Binding.BIT_OR
    if isinstance(parent, ast.IfExp):
        return Binding.TEST if parent.orelse is node else Binding.OR
    if isinstance(parent, (ast.comprehension, ast.FormattedValue)):
        return Binding.OR
    return Binding.TEST
