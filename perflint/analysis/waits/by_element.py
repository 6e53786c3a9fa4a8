"""Loops that go through a tensor one element at a time, and what they read on the host in each turn."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.loops import LENGTH_LIMIT
from perflint.analysis.phases.generation import beside_generation
from perflint.analysis.phases.loop_purpose import names_in
from perflint.analysis.values.kind import Tag
from perflint.analysis.waits.exceptional import is_exceptional
from perflint.analysis.waits.host_values import asks_the_host
from perflint.analysis.waits.host_work import works_on_host
from perflint.analysis.waits.numbers import bounds, certainty_of_bound, may_be_tensor
from perflint.analysis.waits.reads import READ_NAMES, certainty_on_device, device_read, is_unknown_in_step
from perflint.analysis.waits.truth_tests import is_asked, leaves, tests
from perflint.ir.calls import callee_name, is_constant
from perflint.syntax.walk import walk
from perflint.torch_model import tensors

_PAIRING = ("enumerate", "zip", "reversed", "tqdm")
#: Arguments of a `range` whose turns are one apart.
_FIRST_AND_LAST = 2
_SIZES = ("size", "shape")
#: What packed sequences keep on the host, wherever their values are.
_ALWAYS_ON_HOST = "batch_sizes"
#: What gives a tensor as it is.
_SAME = ("detach", "squeeze", "clone", "contiguous")
_WHOLE_ROWS = ("cpu", "to", "type", "tolist")


class TurnRead(NamedTuple):
    """What a turn reads on the host, the tensor that the loop goes through, as it is written, whether it is read to be
    tested, and whether it is computed in the turn, rather than an element of that tensor.
    """

    at: ast.expr
    tensor: str
    is_tested: bool = False
    is_computed: bool = False


def reads_each_element(value: ast.expr, ctx: FileFacts) -> bool:
    """`[int(token) for token in tokens[i]]` of a device tensor: a wait for each number, where one read gives all."""
    bound = ctx.inference.flow.definitions(value) if isinstance(value, ast.Name) else ()
    sources = [item.value for item in bound if isinstance(item.node, ast.comprehension) and not item.path]
    return bool(sources) and all(item is not None and certainty_on_device(item, ctx) is not None for item in sources)


def read_by_turns(loop: ast.For, ctx: FileFacts) -> TurnRead | None:
    """The first read of an element in the body of a loop over a device tensor; None where there is none."""
    own = _from_turn(loop)
    # What the text tells comes first: most loops ask for nothing of their turn.
    asking = [
        (part, waits)
        for statement in loop.body
        for node in ctx.walk(statement)
        for part, waits in _asking(node, ctx)
        if not own.isdisjoint(names_in(part))
        and _is_of_turn(node, loop, ctx)
        and (waits is not is_asked or not asks_the_host(part, ctx))
        and (waits is not _cuts or may_be_tensor(part, ctx))
    ]
    if not asking:
        return None
    gone_through = _gone_through(loop, ctx)
    if gone_through is None or works_on_host(loop, ctx) or gone_through.rpartition(".")[2] == _ALWAYS_ON_HOST:
        return None
    if _follows_decoding(loop, ctx) or beside_generation(loop, ctx):
        return None
    for part, waits in asking:
        if waits(part, ctx) and not is_exceptional(part, ctx):
            tensor = _read_of(part, loop, ctx) or gone_through
            return TurnRead(part, tensor, waits is is_asked, not _is_element(part, loop, ctx))
    return None


def _is_element(value: ast.expr, loop: ast.For, ctx: FileFacts) -> bool:
    """Whether what is read was there before the turn: the turn's own, a row or an element that it looks up, or a test
    of one of these. What may be either counts as such.
    """
    if isinstance(value, (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp)):
        return any(_is_element(part, loop, ctx) for part in ast.iter_child_nodes(value) if isinstance(part, ast.expr))
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        is_as_it_is = value.func.attr in READ_NAMES or value.func.attr in tensors.SAME_NUMBERS_METHODS
        return (is_as_it_is or value.func.attr in _SAME) and _is_element(value.func.value, loop, ctx)
    if isinstance(value, ast.Call):
        return any(_is_element(item, loop, ctx) for item in value.args)  # `int(x)`, `map(int, box)`
    if isinstance(value, (ast.Subscript, ast.Attribute)):
        return _is_element(value.value, loop, ctx)
    if not isinstance(value, ast.Name):
        return False
    found = [item for item in ctx.inference.flow.definitions(value) if item.value is not None]
    inner = [item.value for item in found if item.value is not None and _stands_in(item.value, loop, ctx)]
    return not inner or any(_is_element(item, loop, ctx) for item in inner if item is not value)


def _stands_in(value: ast.expr, loop: ast.For, ctx: FileFacts) -> bool:
    return value is not loop.iter and loop in ctx.loops(value)


def _read_of(part: ast.expr, loop: ast.For, ctx: FileFacts) -> str | None:
    """The tensor that a turn reads an element of, where another one gives the turns: `lengths` of `for row, n in
    zip(rows, lengths): row[:n]`, and of `for i in range(len(rows)): rows[i, : lengths[i]]`."""
    turn = {node.id for node in walk(loop.target) if isinstance(node, ast.Name)}
    for node in walk(part):
        if isinstance(node, ast.Subscript) and turn & set(names_in(node.slice)):
            return ctx.text(node.value)
    turns, target = loop.iter, loop.target
    while isinstance(turns, ast.Call) and callee_name(turns) in _PAIRING and callee_name(turns) != "zip" and turns.args:
        if callee_name(turns) == "enumerate" and isinstance(target, ast.Tuple):
            target = target.elts[-1]
        turns = turns.args[0]
    if not (isinstance(turns, ast.Call) and callee_name(turns) == "zip" and isinstance(target, ast.Tuple)):
        return None
    read = set(names_in(part))
    found = [item for name, item in zip(target.elts, turns.args) if read & set(names_in(name))]
    return ctx.text(found[0]) if len(found) == 1 else None


def _follows_decoding(loop: ast.For, ctx: FileFacts) -> bool:
    """Whether the function of the loop is called once a whole text has been decoded: its turns are few beside that."""
    _, route, _ = ctx.heat_and_route(loop)
    for hop in route[-1:]:
        summary = ctx.program.summaries.get(hop.path)
        around = (
            [facts for facts in summary.functions.values() if facts.line <= hop.line] if summary is not None else []
        )
        facts = max(around, key=lambda item: item.line, default=None)
        if facts is None:
            continue
        for context in facts.contexts:
            if (
                context.kind == "loop"
                and context.end_line < hop.line
                and LENGTH_LIMIT.search(facts.loops[int(context.detail)].text)
            ):
                return True
    return False


def _gone_through(loop: ast.For, ctx: FileFacts) -> str | None:
    """The tensor whose elements or rows a loop goes through: `for x in t`, `enumerate(t)`, `range(len(t))`."""
    turns = loop.iter
    while isinstance(turns, ast.Call) and isinstance(turns.func, ast.Name) and turns.args:
        name = turns.func.id
        if name == "range" and len(turns.args) > _FIRST_AND_LAST:
            return None  # chunks, not elements
        if name == "range":
            return _sized(turns.args[1] if len(turns.args) > 1 else turns.args[0], ctx)
        if name not in _PAIRING:
            break
        if name == "zip":
            found = [item for item in turns.args if certainty_on_device(item, ctx) is not None]
            return ctx.text(found[0]) if found else None
        turns = turns.args[0]
    return ctx.text(turns) if certainty_on_device(turns, ctx) is not None else None


def _sized(stop: ast.expr, ctx: FileFacts) -> str | None:
    """The tensor whose size is the number of turns, or one more: `len(t)`, `t.shape[0]`, `t.size(0) - 1`."""
    if isinstance(stop, ast.Name):
        found = ctx.inference.flow.definitions(stop)
        value = found[0].value if len(found) == 1 else None
        return _sized(value, ctx) if isinstance(value, (ast.Call, ast.Subscript, ast.BinOp)) else None
    if isinstance(stop, ast.BinOp):
        is_off_by_one = isinstance(stop.op, (ast.Sub, ast.Add)) and is_constant(stop.right, 1)
        return _sized(stop.left, ctx) if is_off_by_one else None
    if isinstance(stop, ast.Call) and isinstance(stop.func, ast.Name) and stop.func.id == "len" and stop.args:
        return ctx.text(stop.args[0]) if ctx.kind(stop.args[0]).tag is Tag.TENSOR else None
    while isinstance(stop, (ast.Subscript, ast.Call)):
        stop = stop.value if isinstance(stop, ast.Subscript) else stop.func
    if (
        isinstance(stop, ast.Attribute)
        and stop.attr in _SIZES
        and ctx.kind(stop.value).tag in (Tag.TENSOR, Tag.OUTPUT, Tag.UNKNOWN)
    ):
        return ctx.text(stop.value)
    return None


def _from_turn(loop: ast.For) -> set[str]:
    """The names that hold something of one turn: the loop's own, and what is computed from them in its body."""
    own = {node.id for node in walk(loop.target) if isinstance(node, ast.Name)}
    for node in walk(loop):
        if isinstance(node, ast.Assign) and own & set(names_in(node.value)):
            own |= {part.id for target in node.targets for part in walk(target) if isinstance(part, ast.Name)}
    return own


def _is_of_turn(node: ast.AST, loop: ast.For, ctx: FileFacts) -> bool:
    """Whether a node in a loop is in none of the loops in it, which are looked at by themselves."""
    return not isinstance(node, (ast.expr, ast.stmt)) or next(iter(ctx.loops(node)), None) is loop


def _asking(node: ast.AST, ctx: FileFacts) -> Iterator[tuple[ast.expr, Callable[[ast.expr, FileFacts], bool]]]:
    """What may read a value on the host, by its name or its place, and what tells whether it does."""
    # Rows that are copied whole are fewer than elements, and mostly handed on, to be decoded or printed.
    if isinstance(node, ast.Call) and callee_name(node) in READ_NAMES and callee_name(node) not in _WHOLE_ROWS:
        yield node, _reads
    if isinstance(node, ast.Slice):
        for bound in bounds(node, ctx):
            yield bound, _cuts
    for test in tests(node):
        for leaf in leaves(test):
            yield leaf, is_asked


def _cuts(bound: ast.expr, ctx: FileFacts) -> bool:
    return certainty_of_bound(bound, ctx) is not None


def _reads(node: ast.expr, ctx: FileFacts) -> bool:
    if device_read(node, ctx) is not None:
        return True
    # An element of the tensor that the loop goes through is where that is, and nobody loops over the host's so.
    if not isinstance(node, ast.Call) or callee_name(node) != "item" or not isinstance(node.func, ast.Attribute):
        return False
    value = node.func.value
    is_plain = isinstance(value, (ast.Name, ast.Subscript))
    return is_plain and is_unknown_in_step(value, ctx.kind(value), ctx, also=(Tag.TENSOR,))
