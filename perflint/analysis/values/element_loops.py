"""Loops that go through arrays on the host element by element in Python, where NumPy or torch computes all of them at
once. Asked by the rules about samples and about steps.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.trip_count import most_turns
from perflint.analysis.naming.loops import OVER_FEW_PARTS
from perflint.analysis.values.kind import Tag
from perflint.finding import Heat
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk
from perflint.torch_model.effects import Effect
from perflint.torch_model.names import root

#: Fewer iterations cost less than what an operation on whole arrays sets up.
_FEW = 8
#: A loop over a window counts within two others.
_AROUND_WINDOWS = 3
#: So many elements of arrays in each turn of a loop that stands in no other.
_MANY_ELEMENTS = 5
#: What an element is computed with that arrays have as well, and what collects what a loop finds.
_OF_ELEMENTS = frozenset(
    "int float bool str abs hypot min max round len range exp sqrt log pow sin cos floor ceil item cpu numpy tolist "
    "append add astype norm sum copy fabs zip enumerate isnan any all dot sign square where sorted".split()
)
#: Python numbers of elements.
_NUMBERS = frozenset({"int", "float", "bool", "str"})
#: Compiles the loops of what it decorates.
_COMPILERS = frozenset({"jit", "njit", "guvectorize", "vectorize", "script", "autojit", "cfunc"})
_ARRAYS = (Tag.ARRAY, Tag.TENSOR)
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_LIBRARIES = frozenset({"numpy", "math"})


class ElementLoop(NamedTuple):
    """The array that a nest of loops goes through, and whether each of its elements takes microseconds: it is that of
    a tensor, or given to a function of NumPy.
    """

    array: str
    is_slow: bool


class _Nest(NamedTuple):
    """The innermost loop, those around it that turn for the same elements, the outermost first, and their names."""

    loops: tuple[ast.For, ...]
    names: frozenset[str]
    rows: dict[str, ast.expr]


def goes_by_element(loop: ast.For, ctx: FileFacts) -> ElementLoop | None:
    """What a loop, with those in it, reads or fills one element after the other. Asked of the outermost loop that the
    elements depend on; the others give None.
    """
    for inner in _innermost(loop):
        nest = _nest_of(inner, ctx)
        if nest is not None and nest.loops[0] is loop:
            return _work_of(nest, ctx)
    return None


def _innermost(loop: ast.For) -> Iterator[ast.For]:
    for part in walk(loop):
        if isinstance(part, ast.For) and not any(isinstance(item, (ast.For, ast.While)) for item in _below(part)):
            yield part


def _below(loop: ast.For) -> Iterator[ast.AST]:
    return (part for part in walk(loop) if part is not loop)


def _nest_of(inner: ast.For, ctx: FileFacts) -> _Nest | None:
    """The loops around the innermost one whose own names choose its elements, or say how often it turns."""
    is_window = _is_window(inner.iter)
    if not is_window and (_goes_through_list(inner, ctx) or not _turns_often(inner, ctx)):
        return None
    loops: list[ast.For] = [inner]
    used = _names(inner)
    for around in ctx.loops(inner):
        if around is inner:
            continue
        if not isinstance(around, ast.For) or ctx.heat(around) < Heat.STEP or not _turns_often(around, ctx):
            break
        if _names(around.target).isdisjoint(used):
            break
        used |= _names(around.iter)
        loops.insert(0, around)
    if is_window and len(loops) < _AROUND_WINDOWS:
        return None
    names = frozenset(name for item in loops for name in _names(item.target))
    rows = {name: given for item in loops for name, given in _rows(item.target, item.iter)}
    return _Nest(tuple(loops), names | _derived(inner, names), rows)


def _turns_often(loop: ast.For, ctx: FileFacts) -> bool:
    turns = most_turns(loop, ctx)
    if turns is not None:
        return turns >= _FEW
    if OVER_FEW_PARTS.search(ctx.text(loop.target)) or _is_window(loop.iter):
        return False
    return _is_extent(loop.iter) or not OVER_FEW_PARTS.search(ctx.text(loop.iter))


def _goes_through_list(loop: ast.For, ctx: FileFacts) -> bool:
    """Whether a loop goes through what is known to be no array: there may be a handful."""
    if isinstance(loop.iter, ast.Call) and callee_name(loop.iter) == "range":
        return False
    return all(ctx.kind(given).tag not in _ARRAYS for _, given in _rows(loop.target, loop.iter))


def _is_window(turns: ast.expr) -> bool:
    """`range(i - r, i + r + 1)`: as wide as another number says, and not as an array is."""
    if not isinstance(turns, ast.Call) or callee_name(turns) != "range" or len(turns.args) < 2:
        return False
    return not _names(turns.args[0]).isdisjoint(_names(turns.args[1]))


def _is_extent(turns: ast.expr) -> bool:
    """`range(x.shape[0])`, `range(len(x))`: whatever the name of the array."""
    if not isinstance(turns, ast.Call) or callee_name(turns) != "range" or len(turns.args) != 1:
        return False
    return any(
        (isinstance(part, ast.Attribute) and part.attr in ("shape", "size"))
        or (isinstance(part, ast.Name) and part.id == "len")
        for part in walk(turns.args[0])
    )


def _rows(target: ast.expr, turns: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The names of rows, and what each is a row of: `for i, (row, other) in enumerate(zip(x, y))`."""
    if isinstance(target, ast.Name):
        if not isinstance(turns, ast.Call) or callee_name(turns) not in ("range", "enumerate", "zip"):
            yield target.id, turns
    elif isinstance(target, ast.Tuple) and isinstance(turns, ast.Call) and isinstance(turns.func, ast.Name):
        if turns.func.id == "enumerate" and len(target.elts) == 2 and turns.args:
            yield from _rows(target.elts[1], turns.args[0])
        elif turns.func.id == "zip":
            for part, given in zip(target.elts, turns.args):
                yield from _rows(part, given)


def _derived(loop: ast.For, names: frozenset[str]) -> set[str]:
    """What a turn computes of the names of its loops."""
    found: set[str] = set()
    for part in loop.body:
        if isinstance(part, ast.Assign) and not (names | found).isdisjoint(_names(part.value)):
            found |= {
                name for target in part.targets if not isinstance(target, ast.Subscript) for name in _names(target)
            }
    return found


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in walk(node) if isinstance(part, ast.Name)}


def _work_of(nest: _Nest, ctx: FileFacts) -> ElementLoop | None:
    inner = nest.loops[-1]
    if is_compiled(inner, ctx) or _prepares(inner, ctx):
        return None
    elements = list(_elements(inner, nest, ctx))
    counted = [item for item in elements if _is_of_number(item.node, ctx)]
    if not counted:
        return None
    of_tensors = any(item.is_tensor for item in counted)
    if len(nest.loops) == 1 and not of_tensors and len(counted) < _MANY_ELEMENTS:
        return None
    if not of_tensors and _leaves_early(inner):
        return None
    of_project = of_tensors and (len(nest.loops) > 1 or _fills_by_call(counted, inner, ctx))
    if _does_other_work(inner, ctx, or_of_project=of_project) or _feeds_itself(elements, inner, ctx):
        return None
    stored = next((item for item in counted if isinstance(item.node.ctx, ast.Store)), counted[0])
    return ElementLoop(ctx.text(stored.base), of_tensors or _calls_numpy(inner, ctx))


def _fills_by_call(counted: list[_Element], loop: ast.For, ctx: FileFacts) -> bool:
    """`row[i] = overlap(box, other)` of a sample: what the function computes of one is what makes up the array."""
    if ctx.role(loop) != "data":
        return False
    statements = [part for part in walk(loop) if isinstance(part, ast.Assign) and isinstance(part.value, ast.Call)]
    filled = {id(part) for statement in statements for target in statement.targets for part in walk(target)}
    return any(id(item.node) in filled for item in counted)


def _calls_numpy(loop: ast.For, ctx: FileFacts) -> bool:
    return any(isinstance(part, ast.Call) and root(ctx.target(part.func) or "") == "numpy" for part in walk(loop))


class _Element(NamedTuple):
    node: ast.Subscript
    base: ast.expr
    places: tuple[ast.expr, ...]
    is_tensor: bool


def _elements(loop: ast.For, nest: _Nest, ctx: FileFacts) -> Iterator[_Element]:
    """The elements of arrays that a turn reads or writes: by two indices or more, or one of an array of one dimension,
    some of them the loops' own.
    """
    for part in walk(loop):
        if not isinstance(part, ast.Subscript) or _is_begun(part, ctx):
            continue
        base, places = _taken_apart(part)
        if not all(_is_place(item) for item in places):
            continue
        of_row = isinstance(base, ast.Name) and base.id in nest.rows
        if not of_row and all(_names(item).isdisjoint(nest.names) for item in places):
            continue
        array = nest.rows[base.id] if of_row and isinstance(base, ast.Name) else base
        kind = _kind(array, ctx)
        if kind is None:
            continue
        is_tensor, rank = kind
        if rank is not None and len(places) + of_row != rank:
            continue
        if rank is None and len(places) + of_row < 2 and not _is_made_number(part, ctx):
            continue
        yield _Element(part, array, places, is_tensor)


def _is_place(item: ast.expr) -> bool:
    """Whether an index picks one place: no slice, no `None`, no key."""
    return not isinstance(item, ast.Slice) and not (isinstance(item, ast.Constant) and not isinstance(item.value, int))


def _is_begun(part: ast.Subscript, ctx: FileFacts) -> bool:
    """`x[i]` of `x[i][j]`"""
    around = ctx.tree.parent(part)
    return isinstance(around, ast.Subscript) and around.value is part


def _taken_apart(part: ast.Subscript) -> tuple[ast.expr, tuple[ast.expr, ...]]:
    places: list[ast.expr] = []
    base: ast.expr = part
    while isinstance(base, ast.Subscript):
        own = base.slice.elts if isinstance(base.slice, ast.Tuple) else [base.slice]
        places[:0] = own
        base = base.value
    return base, tuple(places)


def _kind(array: ast.expr, ctx: FileFacts) -> tuple[bool, int | None] | None:
    """Whether an array is a tensor on the host, and its rank; None for anything else."""
    for kind in (ctx.kind(array), ctx.kind_on_route(array)):
        if kind.tag is Tag.ARRAY:
            return False, kind.rank
        if kind.tag is Tag.TENSOR and kind.on_host:
            return True, kind.rank
    return None


def _is_made_number(part: ast.Subscript, ctx: FileFacts) -> bool:
    """`int(x[i])`, `x[i].item()`, `x[i].cpu().item()`"""
    node: ast.AST = part
    while True:
        around = ctx.tree.parent(node)
        if isinstance(around, ast.Attribute) and around.attr in ("item", "cpu"):
            if around.attr == "item":
                return True
            node = ctx.tree.parent(around) or around
            continue
        return isinstance(around, ast.Call) and isinstance(around.func, ast.Name) and around.func.id in _NUMBERS


def _is_of_number(part: ast.Subscript, ctx: FileFacts) -> bool:
    """Whether an element is computed with, compared, written, or made a number, rather than handed on."""
    if isinstance(part.ctx, ast.Store) or _is_made_number(part, ctx):
        return True
    around = ctx.tree.parent(part)
    if isinstance(around, ast.Compare):
        return all(isinstance(op, _ORDERS) for op in around.ops)
    if isinstance(around, (ast.List, ast.Tuple)):
        around = ctx.tree.parent(around)
        return isinstance(around, ast.Call) and root(ctx.target(around.func) or "") == "numpy"
    if isinstance(around, (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.AugAssign, ast.Subscript, ast.Slice)):
        return True
    if isinstance(around, ast.Call):
        return callee_name(around) in _OF_ELEMENTS - {"append", "add"}
    if isinstance(around, ast.If):
        return around.test is part
    return (
        isinstance(around, ast.Assign)
        and around.value is part
        and all(isinstance(item, (ast.Name, ast.Subscript)) for item in around.targets)
    )


def _leaves_early(loop: ast.For) -> bool:
    return any(isinstance(part, (ast.Break, ast.Return, ast.Yield)) for part in walk(loop))


def _does_other_work(loop: ast.For, ctx: FileFacts, *, or_of_project: bool) -> bool:
    """Whether a turn calls what arrays do not have, of which the element is the least, or copies rows that have
    lengths of their own. What a function of the project computes of numbers that are read from tensors is no such
    thing: the numbers cost more.
    """
    for part in walk(loop):
        if isinstance(part, ast.Call):
            name = ctx.target(part.func) or ""
            if callee_name(part) in _OF_ELEMENTS or root(name) in _LIBRARIES or name.startswith("torch."):
                continue
            if not (or_of_project and ctx.project_target(part.func) is not None):
                return True
        elif isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store):
            places = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
            if any(isinstance(item, ast.Slice) and _names(item) for item in places) and not _is_filled(part, ctx):
                return True
    return False


def _is_filled(part: ast.Subscript, ctx: FileFacts) -> bool:
    """`x[i, start:end] = i`: one number, in all of a row."""
    statement = ctx.tree.parent(part)
    if not isinstance(statement, ast.Assign):
        return False
    return isinstance(statement.value, ast.Constant) or (
        isinstance(statement.value, ast.Name) and ctx.kind(statement.value).tag is not Tag.TENSOR
    )


def _prepares(loop: ast.For, ctx: FileFacts) -> bool:
    """Whether the elements are of a pass over the data that runs no model: statistics, which are counted once."""
    passes = [item for item in ctx.loops(loop) if ctx.heat(item) < Heat.STEP <= ctx.body_heat(item)]
    if ctx.role(loop) != "batches" or not passes:
        return False
    calls = (part for part in ctx.walk(passes[0]) if isinstance(part, ast.Call))
    return not any(ctx.effects(part).does(Effect.FORWARD) for part in calls)


def _feeds_itself(elements: list[_Element], loop: ast.For, ctx: FileFacts) -> bool:
    """Whether a turn reads what another one wrote, or all that was written so far; or writes by what a table says."""
    stored = [item for item in elements if isinstance(item.node.ctx, ast.Store)]
    written = {ctx.text(item.base): item for item in stored}
    for item in elements:
        other = written.get(ctx.text(item.base))
        if item not in stored and other is not None and _place(other, ctx) != _place(item, ctx)[: len(other.places)]:
            return True
    for part in walk(loop):
        if isinstance(part, (ast.Name, ast.Attribute)) and ctx.text(part) in written and _is_whole(part, ctx):
            return True
    if any(_is_recurrence(part) for part in walk(loop)):
        return True
    return any(_looks_up(place, ctx) for item in stored for place in item.places)


def _is_recurrence(statement: ast.AST) -> bool:
    """`total = total * decay + x[i]`: each value needs the one before, and is no sum, nor the largest or smallest."""
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.target, ast.Name) and not isinstance(statement.op, (ast.Add, ast.Sub))
    if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
        return False
    name, value = statement.targets[0].id, statement.value
    if name not in _names(value):
        return False
    if isinstance(value, ast.Call):
        return callee_name(value) not in ("max", "min", "int", "float")
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, (ast.Add, ast.Sub)):
        return True
    return not any(isinstance(side, ast.Name) and side.id == name for side in (value.left, value.right))


def _is_whole(array: ast.expr, ctx: FileFacts) -> bool:
    """Whether an array is read as a whole, and not one element or its shape."""
    around = ctx.tree.parent(array)
    return not isinstance(around, ast.Attribute) and not (isinstance(around, ast.Subscript) and around.value is array)


def _looks_up(place: ast.expr, ctx: FileFacts) -> bool:
    return any(isinstance(part, ast.Subscript) and ctx.kind(part.value).tag is Tag.MAPPING for part in walk(place))


def _place(item: _Element, ctx: FileFacts) -> list[str]:
    return [ctx.text(part) for part in item.places]


def is_compiled(node: ast.AST, ctx: FileFacts) -> bool:
    function = ctx.tree.function_of(node)
    if function is None:
        return False
    decorators = [item.func if isinstance(item, ast.Call) else item for item in function.decorator_list]
    return any((ctx.target(item) or ctx.text(item)).rpartition(".")[2] in _COMPILERS for item in decorators)
