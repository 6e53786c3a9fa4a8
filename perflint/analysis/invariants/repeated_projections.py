"""Linear layers that each turn of a recurrent loop applies to what no turn changes, or to one position after the other
of what is there before the loop: in the loop, or in the functions of the project that it hands the value to.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from perflint.analysis.elsewhere import definition_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.forwards import arguments_by_name
from perflint.analysis.invariants.bound_in import carries_names
from perflint.analysis.invariants.in_loops import is_fixed
from perflint.analysis.phases.loop_purpose import names_in
from perflint.analysis.values.kind import Tag
from perflint.finding import Hop
from perflint.ir.calls import arguments_of
from perflint.syntax.bindings import Binding
from perflint.syntax.walk import walk

Loop = ast.For | ast.AsyncFor | ast.While
_LAYERS = frozenset("Linear Conv1d Conv2d Conv3d".split())
#: What gives the same numbers in another shape, so that a layer may as well come before it or be given all at once.
_RESHAPING = frozenset("contiguous permute transpose view reshape squeeze unsqueeze flatten float".split())
#: What puts it beside something else, so that a layer of both is the sum of a layer of each.
_JOINS = ("torch.cat", "torch.concat", "torch.concatenate")
#: What may leave out what stands in it, or run it several times.
_BRANCHES = (ast.IfExp, ast.For, ast.While, ast.Try, ast.Lambda, ast.comprehension, ast.ListComp, ast.GeneratorExp)
#: How many calls a value is followed down.
_DEEPEST = 4

#: What a layer is applied to, as far as one sees.
_GIVEN = (Tag.TENSOR, Tag.UNKNOWN, Tag.OUTPUT)


class Applied(NamedTuple):
    """A layer as it is written, the place where it is applied, and whether what it is given is joined with more."""

    layer: str
    place: Hop
    joined: bool


class Repeated(NamedTuple):
    """`call`, which stands in the loop, applies layers to `given`: to all of it in each turn, or to one position."""

    call: ast.Call
    given: ast.expr
    applied: tuple[Applied, ...]
    by_position: bool


def repeated_projections(loop: Loop, ctx: FileFacts) -> Iterator[Repeated]:
    """The projections that a loop whose turns need one another repeats."""
    if not carries_names(loop, ctx):
        return
    for call in ctx.walk(loop):
        if (
            not isinstance(call, ast.Call)
            or ctx.loops(call)[:1] != [loop]
            or not _is_fixed_callee(call.func, loop, ctx)
        ):
            continue
        if _is_guarded(call, loop, ctx):
            continue
        found: dict[Applied, tuple[ast.expr, bool]] = {}
        for item in arguments_of(call):
            by_position = _is_known(item, loop, ctx)
            if by_position is not None:
                parts = _projections(call, item, ctx, _DEEPEST)
                found.update((part, (item, by_position)) for part in parts if not (part.joined and by_position))
        if found:
            given, by_position = next(iter(found.values()))
            yield Repeated(call, given, tuple(found), by_position)


def _is_fixed_callee(func: ast.expr, loop: Loop, ctx: FileFacts) -> bool:
    """Whether each turn calls the same: no `layer` of a loop over layers, and no `self.layers[i]`."""
    return isinstance(func, (ast.Name, ast.Attribute)) and ctx.inference.flow.is_invariant(func, loop)


def _is_known(value: ast.expr, loop: Loop, ctx: FileFacts) -> bool | None:
    """Whether what is given is one position of what is known before the loop. None where it is not known there."""
    value = _reshaped(value)
    # What kind it is takes far longer to tell than where it comes from: that is asked last.
    name = value if isinstance(value, ast.Name) else None
    if name is not None:
        if is_fixed(name, loop, ctx):
            return False if ctx.kind(name).tag in _GIVEN else None
        made = ctx.inference.flow.definitions(name)
        if len(made) != 1 or made[0].path or made[0].binding is not Binding.ASSIGN or made[0].value is None:
            return None
        value = _reshaped(made[0].value)
    if not isinstance(value, ast.Subscript) or not is_fixed(value.value, loop, ctx):
        return None
    if name is not None and ctx.kind(name).tag not in _GIVEN:
        return None
    if not ctx.kind(value.value).is_tensor and ctx.kind(value.value).tag is not Tag.UNKNOWN:
        return None
    index = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
    if all(isinstance(item, ast.Slice) and item.lower is None and item.step is None for item in index):
        return False
    turning = (
        {part.id for part in walk(loop.target) if isinstance(part, ast.Name)} if isinstance(loop, ast.For) else set()
    )
    names = {part.id for item in index for part in walk(item) if isinstance(part, ast.Name)}
    return True if names and names <= turning else None


def _projections(call: ast.Call, given: ast.expr, ctx: FileFacts, depth: int) -> Iterator[Applied]:
    """The layers that a call applies to what it is given, itself or in what it runs."""
    if _is_layer(call, ctx):
        if call.args[:1] == [given]:
            yield Applied(ctx.text(call.func), ctx.hop(call, "the layer"), joined=False)
        return
    index = ctx.call_index(call)
    for edge in ctx.program.graph.outgoing.get(ctx.scope(call), ()) if depth else ():
        found = definition_of(edge.callee, ctx) if edge.index == index and not edge.callback else None
        if found is None or _is_deep(found[0]):
            continue
        function, there = found
        names = arguments_by_name(call, there.program.function(edge.callee))
        for name in (name for name, value in names.items() if value is given):
            for item in _of_parameter(name, function, there, depth - 1):
                is_layer = _only_returns(function)  # what does nothing but apply a layer is one
                yield Applied(ctx.text(call.func), ctx.hop(call, "the layer"), item.joined) if is_layer else item


def _only_returns(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    *before, last = function.body
    docstring = all(isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant) for item in before)
    return docstring and isinstance(last, ast.Return)


def _is_deep(function: ast.AST) -> bool:
    """Whether a function runs one layer after the other: what it does once beside that is a small part of its work."""
    return any(
        isinstance(loop, ast.For)
        and any(
            isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in names_in(loop.target)
            for part in walk(loop)
        )
        for loop in walk(function)
    )


def _of_parameter(
    name: str, function: ast.FunctionDef | ast.AsyncFunctionDef, ctx: FileFacts, depth: int
) -> Iterator[Applied]:
    for part in ctx.walk(function):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and _holds(part, name, ctx, _DEEPEST):
            value, call, joined = _handed(part, ctx)
            if call is not None and not _is_guarded(call, function, ctx):
                yield from (
                    item._replace(joined=item.joined or joined) for item in _projections(call, value, ctx, depth)
                )


def _holds(use: ast.Name, name: str, ctx: FileFacts, depth: int) -> bool:
    """Whether a name holds the numbers that a parameter was given, maybe in another shape."""
    made = ctx.inference.flow.definitions(use)
    if len(made) != 1 or made[0].path:
        return False
    if made[0].binding is Binding.PARAM:
        return made[0].name == name
    value = made[0].value if made[0].binding is Binding.ASSIGN else None
    inner = _reshaped(value) if value is not None else None
    return isinstance(inner, ast.Name) and depth > 0 and _holds(inner, name, ctx, depth - 1)


def _reshaped(value: ast.expr) -> ast.expr:
    """`x` of `x.transpose(0, 1)`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _RESHAPING:
        value = value.func.value
    return value


def _handed(value: ast.expr, ctx: FileFacts) -> tuple[ast.expr, ast.Call | None, bool]:
    """The call that a value is an argument of, seen through other shapes and joins, and whether it is joined there."""
    joined = False
    while True:
        parent = ctx.tree.parent(value)
        outer = ctx.tree.parent(parent) if parent is not None else None
        if isinstance(parent, (ast.Tuple, ast.List)) and isinstance(outer, ast.Call) and ctx.is_call_of(outer, *_JOINS):
            value, joined = outer, True
        elif isinstance(parent, ast.Attribute) and parent.attr in _RESHAPING and isinstance(outer, ast.Call):
            value = outer
        elif isinstance(parent, ast.Call):
            return value, parent if value in parent.args else None, joined
        else:
            is_keyword = isinstance(parent, ast.keyword) and isinstance(outer, ast.Call)
            return value, outer if is_keyword and isinstance(outer, ast.Call) else None, joined


def _is_guarded(call: ast.Call, region: ast.AST, ctx: FileFacts) -> bool:
    """Whether a call does not run in every run of a function or loop, or once for each of several things."""
    for outer in ctx.tree.ancestors(call):
        if outer is region:
            return False
        if isinstance(outer, _BRANCHES) or (isinstance(outer, ast.If) and not _is_of_options(outer.test)):
            return True
    return True


def _is_of_options(test: ast.expr) -> bool:
    """`self.kind == "additive"`, which is the same in all turns; not whether a cache is filled."""
    return (
        isinstance(test, ast.Compare)
        and all(isinstance(item, (ast.Eq, ast.NotEq)) for item in test.ops)
        and all(isinstance(item, ast.Constant) for item in test.comparators)
        and isinstance(test.left, ast.Attribute)
    )


def _is_layer(call: ast.Call, ctx: FileFacts) -> bool:
    kind = ctx.kind(call.func)
    of_torch = kind.tag is Tag.MODULE and not kind.path and kind.qualified.startswith("torch.nn.")
    return of_torch and kind.qualified.rpartition(".")[2] in _LAYERS
