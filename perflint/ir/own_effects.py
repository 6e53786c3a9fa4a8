"""What a function's own text does that outlasts it, as facts for `analysis.effects`: what it keeps, writes into, reads
back to the host, enters; and which of its lines need not run. Pure, over `ast`.

Calls are facts of their own (`CallFacts`); here stands what is no call, or a call that leads nowhere in the program.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from perflint.ir.summary import EffectFacts, record
from perflint.syntax.walk import own_statements

__all__ = ["COMPUTES", "ENTERS", "KEEPS", "PRINTS", "READERS", "READS", "WRITES", "own_effects", "uncertain"]

#: Kinds of `EffectFacts`.
KEEPS, WRITES, READS, PRINTS, COMPUTES, ENTERS = "keeps", "writes", "reads", "prints", "computes", "enters"

#: Methods that give the host a value of the device.
READERS = frozenset("item tolist cpu numpy".split())
#: Methods that put their argument into what they are called on, with the place of that argument.
_ADDERS = {"append": 0, "appendleft": 0, "add": 0, "extend": 0, "insert": 1, "setdefault": 1, "put": 0, "update": 0}
_LOGGERS = frozenset("debug info warning error exception critical".split())
#: Methods of tensors that the survey does not write down as calls, though they run on the device.
_COMPUTING = frozenset(
    "sum mean max min float half softmax sigmoid argmax argmin pow sqrt exp cumsum gather clone masked_fill any all "
    "matmul mm bmm log abs".split()
)
#: Functions that make a tensor on the host, whatever they are given.
_ON_HOST = frozenset("from_numpy FloatTensor LongTensor Tensor IntTensor ByteTensor BoolTensor DoubleTensor".split())
#: Calls that give a tensor with the graph of what they are called on.
_CARRIERS = frozenset("mean sum view reshape squeeze unsqueeze to cuda cpu div mul add clone float double half".split())
#: What a test asks that only tells what the machine is: the program that it was written for comes out at "yes".
_HARDWARE = frozenset({"is_available", "is_initialized", "is_cuda", "is_built"})
#: How many devices or processes there are: a program for several finds several.
_COUNTS = frozenset({"device_count", "get_world_size", "world_size"})
_LEAVING = (ast.Return, ast.Break, ast.Continue)
_Bound = Mapping[str, Sequence["ast.expr | None"]]


def _is_fresh_copy(value: ast.expr) -> bool:
    """`torch.from_numpy(rows)`: what is computed with it right away, the host computes."""
    func = value.func if isinstance(value, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr in _ON_HOST


def own_effects(parts: Sequence[ast.AST], params: frozenset[str], bound: _Bound, first: str) -> tuple[EffectFacts, ...]:
    """The facts of one function: `parts` are all nodes of its own, `params` its parameters, `bound` what its local
    names are given, and `first` its first parameter, which is `self` in a method.
    """
    reader = _Reader(params, bound, first)
    found: dict[EffectFacts, None] = {}
    # Few nodes of all are of these classes.
    for part in [part for part in parts if part.__class__ in _HANDLERS]:
        for fact in _HANDLERS[part.__class__](reader, part):
            found[fact] = None
    return tuple(sorted(found, key=lambda fact: (fact.line, fact.column, fact.kind, fact.name, fact.detail)))


class _Reader:
    def __init__(self, params: frozenset[str], bound: _Bound, first: str) -> None:
        self.params = params
        self.bound = bound
        self.own = first if first in ("self", "cls") else ""
        self.computes = False

    def call(self, node: ast.Call) -> Iterator[EffectFacts]:
        func = node.func
        if type(func) is ast.Name:
            if func.id == "print":
                yield _fact(PRINTS, "", "", node)
            return
        if type(func) is not ast.Attribute:
            return
        name = func.attr
        if name in READERS:
            if not node.args:
                yield _fact(READS, self.root(func.value), name, node)
        elif name in _ADDERS:
            place = _ADDERS[name]
            into = self.lasting(func.value)
            if into and len(node.args) > place:
                yield from self.kept(node.args[place], into, name, node)
        elif name in _LOGGERS:
            yield _fact(PRINTS, "", "", node)
        elif name[-1:] == "_" and name[-2:] != "__":
            root = self.root(func.value)
            if root in self.params:
                yield _fact(WRITES, root, name, node)
        elif name in _COMPUTING and not self.computes and not _is_fresh_copy(func.value):
            self.computes = True
            yield _fact(COMPUTES, "", "", node)

    def operation(self, node: ast.BinOp) -> Iterator[EffectFacts]:
        if not self.computes and not isinstance(node.left, ast.Constant):
            self.computes = True
            yield _fact(COMPUTES, "", "", node)

    def with_item(self, node: ast.withitem) -> Iterator[EffectFacts]:
        entered = node.context_expr
        if isinstance(entered, ast.Call):
            yield _fact(ENTERS, "", _last(entered), entered)
        elif name := _dotted(entered):
            yield _fact(ENTERS, name, "", entered)

    def assign(self, node: ast.Assign) -> Iterator[EffectFacts]:
        for target in node.targets:
            yield from self.stored(target, node.value, node)

    def augmented(self, node: ast.AugAssign) -> Iterator[EffectFacts]:
        target = node.target
        if isinstance(target, ast.Name):
            if target.id in self.params:
                yield _fact(WRITES, target.id, "+=", node)
            return
        into = self.lasting(target)
        if into:
            yield from self.kept(node.value, into, "sum", node)
        root = self.root(target)
        if root in self.params and root != self.own:
            yield _fact(WRITES, root, "+=", node)

    def stored(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> Iterator[EffectFacts]:
        if not isinstance(target, (ast.Attribute, ast.Subscript)):
            return
        into = self.lasting(target)
        if into:
            # `self.total = self.total + loss` grows as `+=` does; an attribute that is set anew forgets what it had.
            grows = isinstance(value, ast.BinOp) and _dotted(value.left) == _dotted(target) != ""
            item = isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Constant)
            yield from self.kept(value, into, "sum" if grows else "item" if item else "set", node)
        if isinstance(target, ast.Subscript):
            root = self.root(target)
            if root in self.params and root != self.own:
                yield _fact(WRITES, root, "[]", node)

    def kept(self, value: ast.expr, into: str, how: str, node: ast.AST) -> Iterator[EffectFacts]:
        for name in self.carried(value, 4):
            if name != into.partition(".")[0]:
                yield _fact(KEEPS, name, f"{how} {into}", node)

    def carried(self, value: ast.expr | None, depth: int) -> set[str]:
        """The parameters that a value holds whole, or whose graph it goes on."""
        if depth == 0 or value is None:
            return set()
        if isinstance(value, ast.Name):
            if value.id in self.bound:
                held = self.bound[value.id]
                return set().union(*(self.carried(item, depth - 1) for item in held)) if len(held) == 1 else set()
            return {value.id} & self.params
        inner: Sequence[ast.expr | None] = ()
        if isinstance(value, (ast.Tuple, ast.List, ast.Set)):
            inner = value.elts
        elif isinstance(value, ast.Dict):
            inner = value.values
        elif isinstance(value, ast.BoolOp):
            inner = value.values
        elif isinstance(value, ast.IfExp):
            inner = (value.body, value.orelse)
        elif isinstance(value, (ast.Starred, ast.NamedExpr)):
            inner = (value.value,)
        elif isinstance(value, ast.BinOp):
            inner = (value.left, value.right)
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _CARRIERS:
            inner = (value.func.value,)
        return set().union(*(self.carried(item, depth - 1) for item in inner))

    def root(self, value: ast.expr) -> str:
        """The name that a value is a part of, by way of attributes, items and local names; "" where there is none."""
        seen: set[str] = set()
        while True:
            if isinstance(value, (ast.Attribute, ast.Subscript)):
                value = value.value
            elif isinstance(value, ast.Name):
                held = self.bound.get(value.id, ())
                if len(held) != 1 or held[0] is None or value.id in seen:
                    return value.id
                seen.add(value.id)
                if not isinstance(held[0], (ast.Attribute, ast.Subscript, ast.Name)):
                    return value.id
                value = held[0]
            else:
                return ""

    def lasting(self, value: ast.expr) -> str:
        """What outlives the call, of which a value is a part: `self.items`, a parameter, or a global as `<name>`; ""
        where it was made in the function itself.
        """
        inner: ast.expr = value
        while isinstance(inner, ast.Subscript):
            inner = inner.value
        root = self.root(inner)
        if not root:
            return ""
        if root in self.params:
            return (_dotted(inner) or root) if root == _first_name(inner) else root
        return "" if root in self.bound else f"<{_dotted(inner) or root}>"


def uncertain(body: Sequence[ast.stmt]) -> tuple[int, ...]:
    """Where code stands that need not run when its function does: line and column of the start and the end of each
    region, in the order of the source, regions apart from each other.
    """
    found: list[int] = []
    _uncertain(body, found)
    return tuple(found)


def _uncertain(body: Sequence[ast.stmt], found: list[int]) -> bool:
    """Note the regions of a block; True where what follows the block need not run either."""
    for place, node in enumerate(body):
        leaves = False
        if isinstance(node, ast.If):
            leaves = _of_branches(node, found)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            leaves = _uncertain(node.body, found)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While, ast.Match)):
            first = node.cases[0].body[0] if isinstance(node, ast.Match) else node.body[0]
            _region(first, node, found)
            leaves = any(isinstance(part, ast.Return) for part in own_statements(node))
        elif isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
            leaves = _of_try(node, found)  # type: ignore[arg-type]
        elif isinstance(node, ast.Expr) and isinstance(node.value, (ast.BoolOp, ast.IfExp)):
            _region(node, node, found)
        elif isinstance(node, _LEAVING):
            return True
        if leaves:
            if place + 1 < len(body):
                _region(body[place + 1], body[-1], found)
            return True
    return False


def _of_branches(node: ast.If, found: list[int]) -> bool:
    asks = _asks_hardware(node.test)
    leaves = False
    for block, is_taken in ((node.body, asks == "yes"), (node.orelse, asks == "no")):
        if not block:
            continue
        if is_taken:
            leaves = _uncertain(block, found) or leaves
            continue
        _region(block[0], block[-1], found)
        if not asks:
            leaves = leaves or any(isinstance(part, _LEAVING) for item in block for part in own_statements(item))
    return leaves


def _of_try(node: ast.Try, found: list[int]) -> bool:
    leaves = _uncertain(node.body, found)
    for handler in node.handlers:
        _region(handler.body[0], handler.body[-1], found)
    for block in (node.orelse, node.finalbody):
        if block:
            leaves = _uncertain(block, found) or leaves
    return leaves


def _region(first: ast.stmt, last: ast.stmt, found: list[int]) -> None:
    found += (first.lineno, first.col_offset, last.end_lineno or last.lineno, last.end_col_offset or 0)


def _asks_hardware(test: ast.expr) -> str:
    """A yes for `torch.cuda.is_available()`, `x.is_cuda`, `device.type == "cuda"` and `get_world_size() > 1`, a no for
    their negation, nothing for anything else.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return {"yes": "no", "no": "yes"}.get(_asks_hardware(test.operand), "")
    if isinstance(test, ast.BoolOp):
        wanted = "yes" if isinstance(test.op, ast.And) else "no"
        return wanted if all(_asks_hardware(item) == wanted for item in test.values) else ""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compares_hardware(test.left, test.ops[0], test.comparators[0])
    return "yes" if _last(test) in _HARDWARE else ""


def _compares_hardware(left: ast.expr, how: ast.cmpop, right: ast.expr) -> str:
    if not isinstance(right, ast.Constant):
        return ""
    if right.value == "cuda" and _last(left) == "type":
        return "yes" if isinstance(how, ast.Eq) else "no" if isinstance(how, ast.NotEq) else ""
    if _last(left) not in _COUNTS or right.value not in (0, 1):
        return ""
    if isinstance(how, (ast.Gt, ast.NotEq)):
        return "yes"
    return "no" if isinstance(how, (ast.Eq, ast.LtE, ast.Lt)) else ""


def _last(value: ast.expr) -> str:
    """The last name of a value, or of what is called for it."""
    func = value.func if isinstance(value, ast.Call) else value
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _fact(kind: str, name: str, detail: str, node: ast.AST) -> EffectFacts:
    return record(EffectFacts, (kind, name, detail, node.lineno, node.col_offset))  # type: ignore[attr-defined]


def _dotted(node: ast.expr) -> str:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def _first_name(node: ast.expr) -> str:
    return _dotted(node).partition(".")[0]


_HANDLERS: dict[type, Callable[[Any, Any], Iterator[EffectFacts]]] = {
    ast.Call: _Reader.call,
    ast.BinOp: _Reader.operation,
    ast.withitem: _Reader.with_item,
    ast.Assign: _Reader.assign,
    ast.AugAssign: _Reader.augmented,
}
