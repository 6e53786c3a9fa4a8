"""Reads that find the device already waited for: the same value was read just before, and nothing was queued since."""

from __future__ import annotations

import ast
import heapq
from bisect import bisect_left
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.waits.cost import finds_little
from perflint.analysis.waits.reads import READ_NAMES, device_read
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk

#: What of a read leaves the value the same: `loss.detach().cpu()` holds what `loss` does.
_SAME = frozenset({"detach", "cpu", "float", "double", "clone", "squeeze", "data"})
#: Reads of what changes by itself: a scaler's scale.
_CHANGING = ("get_scale", "state_dict")
#: What waits for all values.
_SYNCHRONIZE = "torch.cuda.synchronize"
#: Questions about a tensor whose answer is a tensor too.
_CHECKS = ("isnan", "isinf", "isfinite")
_TESTING = (ast.If, ast.While, ast.Assert)


def read_before(node: ast.expr, value: ast.expr, ctx: FileFacts, *, tests: bool = False) -> bool:
    """Whether the value that `node` reads was read before on every path to it, with little launched since:
    `total += loss.item()`, and `log(loss.item())` after it. With `tests`, `if torch.isnan(loss)` is such a read, too.
    """
    base = _base(value)
    if not isinstance(base, (ast.Name, ast.Attribute, ast.Subscript)) or not finds_little(node, ctx):
        return False
    if isinstance(node, ast.Call) and (len(node.args) > 1 or callee_name(node) in _CHANGING):
        return False
    around = ctx.tree.function_of(node) or ctx.tree.module
    text = ctx.text(base)
    position = (node.lineno, node.col_offset)
    reads, asking = ctx.once(_by_text, around)
    waits = heapq.merge(
        *(_before(position, reads.get(name, [])) for name in (text, _SYNCHRONIZE)), key=_place, reverse=True
    )
    # The nearest ones are asked first: they tell most often, and least lies between.
    earlier: Iterator[ast.expr] = (
        part for part in waits if ctx.target(part.func) == _SYNCHRONIZE or _reads(part, text, base, ctx)
    )
    tested = (
        test
        for test in (asking.get(text, ()) if tests else ())
        if _place(test) < position and _asks(test, text, base, ctx)
    )
    graph = ctx.control_flow(node)
    return any(graph.dominates(part, node) for parts in (earlier, tested) for part in parts)


def _before(position: tuple[int, int], reads: list[ast.Call]) -> Iterator[ast.Call]:
    """Those of some reads, in their order, that begin before a position, the last first."""
    for at in range(bisect_left(reads, position, key=_place) - 1, -1, -1):
        yield reads[at]


def _by_text(function: ast.AST, ctx: FileFacts) -> tuple[dict[str, list[ast.Call]], dict[str, list[ast.expr]]]:
    """The calls of a function that may read, and what its tests ask, by the text of what they are about."""
    reads: dict[str, list[ast.Call]] = {}
    asking: dict[str, list[ast.expr]] = {}
    for part in ctx.walk(function):
        if isinstance(part, ast.Call):
            name = callee_name(part)
            if name == "synchronize" and ctx.target(part.func) == _SYNCHRONIZE:
                reads.setdefault(_SYNCHRONIZE, []).append(part)
            elif name in READ_NAMES:
                reads.setdefault(_read_text(part, ctx), []).append(part)
        elif isinstance(part, _TESTING):
            for test in _alternatives(part.test):
                asking.setdefault(_asked_text(test, ctx), []).append(test)
    for calls in reads.values():
        calls.sort(key=_place)
    return reads, asking


def _place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _read_text(call: ast.Call, ctx: FileFacts) -> str:
    given = call.func.value if isinstance(call.func, ast.Attribute) else call.args[0] if call.args else None
    given = _base(given) if given is not None else None
    if isinstance(given, ast.Compare):
        given = _base(given.left)  # `bool(loss == 0)`
    return ctx.text(given) if given is not None else ""


def _asked_text(test: ast.expr, ctx: FileFacts) -> str:
    """What a test asks about: `loss` of `torch.isnan(loss)` and `loss > limit`."""
    if isinstance(test, ast.Call) and len(test.args) == 1:
        return ctx.text(_base(test.args[0]))
    return ctx.text(_base(test.left)) if isinstance(test, ast.Compare) else ""


def reads_after(node: ast.Call, value: ast.expr, loop: ast.AST, ctx: FileFacts) -> list[ast.Call]:
    """Where a loop reads the value that `node` reads again later: the wait is there then, if `node` goes."""
    text = ctx.text(_base(value))
    return [
        part
        for part in ctx.walk(loop)
        if isinstance(part, ast.Call)
        and (part.lineno, part.col_offset) > (node.lineno, node.col_offset)
        and callee_name(part) in READ_NAMES
        and _given_text(part, ctx) == text
    ]


def _given_text(call: ast.Call, ctx: FileFacts) -> str:
    given = call.func.value if isinstance(call.func, ast.Attribute) else call.args[0] if call.args else None
    return ctx.text(_base(given)) if given is not None else ""


def _base(value: ast.expr) -> ast.expr:
    while True:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.args:
            if value.func.attr not in _SAME:
                return value
            value = value.func.value
        elif isinstance(value, ast.Attribute) and value.attr in _SAME:
            value = value.value
        else:
            return value


def _reads(call: ast.Call, text: str, base: ast.expr, ctx: FileFacts) -> bool:
    """Whether `call` reads what is called `text`, and that means the same there as for `base`."""
    given = call.func.value if isinstance(call.func, ast.Attribute) else call.args[0] if call.args else None
    if given is None or len(call.args) > 1:
        return False
    given = _base(given)
    if isinstance(given, ast.Compare):
        given = _base(given.left)  # `bool(loss == 0)`
    if ctx.text(given) != text or device_read(call, ctx) is None:
        return False
    return _means_the_same(given, call, text, base, ctx)


def _alternatives(test: ast.expr) -> Iterator[ast.expr]:
    """What a test asks by itself: the sides of `and`, `or` and `not`."""
    if isinstance(test, ast.BoolOp):
        for side in test.values:
            yield from _alternatives(side)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _alternatives(test.operand)
    else:
        yield test


def _asks(test: ast.expr, text: str, base: ast.expr, ctx: FileFacts) -> bool:
    """Whether a test cannot be told without the value called `text`: `torch.isnan(loss)`, `loss > limit`."""
    if isinstance(test, ast.Call) and callee_name(test) in _CHECKS and len(test.args) == 1:
        asked = test.args[0]
    elif isinstance(test, ast.Compare) and not isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        asked = test.left
    else:
        return False
    return ctx.text(_base(asked)) == text and _means_the_same(_base(asked), test, text, base, ctx)


def _means_the_same(given: ast.expr, at: ast.expr, text: str, base: ast.expr, ctx: FileFacts) -> bool:
    """Whether what is called `text` holds the same value in two places, the first of them at a node."""
    names = [part for part in walk(base) if isinstance(part, ast.Name)]
    others = [part for part in walk(given) if isinstance(part, ast.Name)]
    definitions = ctx.inference.flow.definitions
    if any(list(definitions(one)) != list(definitions(other)) for one, other in zip(names, others)):
        return False
    return isinstance(base, ast.Name) or not _is_stored_between(text, at, base, ctx)


def _is_stored_between(text: str, first: ast.AST, last: ast.AST, ctx: FileFacts) -> bool:
    return any(
        isinstance(part, (ast.Attribute, ast.Subscript))
        and isinstance(part.ctx, ast.Store)
        and ctx.text(part) == text
        and first.lineno <= part.lineno <= last.lineno  # type: ignore[attr-defined]
        for part in ctx.walk(ctx.tree.function_of(first) or ctx.tree.module)
    )


def was_read_before(leaf: ast.expr, ctx: FileFacts) -> bool:
    """`print(loss.item())` and then `if loss < 0.05`: the host has just waited for the loss."""
    sides = [leaf.left, *leaf.comparators] if isinstance(leaf, ast.Compare) else [leaf]
    values = [side for side in sides if ctx.kind(side).is_tensor]
    if isinstance(leaf, ast.Call) and callee_name(leaf) in _CHECKS:
        values = leaf.args[:1] or ([leaf.func.value] if isinstance(leaf.func, ast.Attribute) else [])
    return bool(values) and all(read_before(leaf, value, ctx) for value in values)
