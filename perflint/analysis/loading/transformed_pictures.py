"""Data sets of pictures that a library keeps in memory and changes one by one as they are asked for: what a loader is
given, through names, parameters, parts of data sets and results of functions, and the transforms it was made with.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.call_graph.given_arguments import given_arguments
from perflint.analysis.elsewhere import definition_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import FUNCTION, Scope
from perflint.ir.calls import callee_name, keyword
from perflint.torch_model import loaders

_DEPTH = 6
_SPLITS = frozenset(name.rpartition(".")[2] for name in loaders.PASSING_ON)
_OF_PICTURES = "torchvision.datasets."
#: Steps of a composition from which on they take longer than to hand the picture over: the first makes a tensor.
_LEAST = 2
Place = tuple[ast.expr, FileFacts]


def transforms_pictures(dataset: ast.expr, ctx: FileFacts) -> bool:
    """Whether every data set that one may be is of pictures that are changed for each sample."""
    made = list(_makers(dataset, ctx, _DEPTH))
    return bool(made) and all(_transforms(item, there) for item, there in made)


def _transforms(made: ast.expr, ctx: FileFacts) -> bool:
    refs = ctx.refs(made) if isinstance(made, ast.Call) else ()
    if not refs or not all(not ref.path and ref.name.startswith(_OF_PICTURES) for ref in refs):
        return False
    if all(ref.name in loaders.DECODING_DATASETS for ref in refs):
        return True
    assert isinstance(made, ast.Call)
    given = keyword(made, "transform")
    steps = [] if given is None else list(_makers(given, ctx, _DEPTH))
    return bool(steps) and all(_composes_several(step) for step, _ in steps)


def _composes_several(made: ast.expr) -> bool:
    if not isinstance(made, ast.Call) or callee_name(made) != "Compose" or not made.args:
        return False
    steps = made.args[0]
    return isinstance(steps, (ast.List, ast.Tuple)) and len(steps.elts) >= _LEAST


def _makers(value: ast.expr, ctx: FileFacts, depth: int) -> Iterator[Place]:
    """The expressions that make what a value may be."""
    for origin in ctx.inference.origins(value):
        further = list(_behind(origin, ctx)) if depth else []
        for item, there in further:
            yield from _makers(item, there, depth - 1)
        if not further:
            yield origin, ctx


def _behind(origin: ast.expr, ctx: FileFacts) -> Iterator[Place]:
    if isinstance(origin, ast.Call):
        yield from _handed_on(origin, (), ctx)
    elif isinstance(origin, ast.IfExp):
        yield from ((item, ctx) for item in (origin.body, origin.orelse))
    elif isinstance(origin, ast.Name):
        yield from given_arguments(origin, ctx)
        for made in ctx.inference.flow.definitions(origin):
            if made.path and isinstance(made.value, ast.Call):
                yield from _handed_on(made.value, made.path, ctx)


def _handed_on(call: ast.Call, path: tuple[int | str, ...], ctx: FileFacts) -> Iterator[Place]:
    """What a part of a data set is a part of, what a lambda makes, what a function of the project returns."""
    if callee_name(call) in _SPLITS and call.args:
        yield call.args[0], ctx
        return
    for origin in ctx.inference.origins(call.func):
        if isinstance(origin, ast.Lambda):
            yield origin.body, ctx
    ref = ctx.project_target(call.func)
    found = definition_of(Scope(ref.path, ref.name), ctx) if ref is not None and ref.kind == FUNCTION else None
    for part in found[1].body(found[0]) if found is not None else ():
        if isinstance(part, ast.Return) and part.value is not None:
            value: ast.expr = part.value
            if path and isinstance(value, ast.Tuple) and isinstance(path[0], int) and path[0] < len(value.elts):
                value = value.elts[path[0]]
            yield value, found[1]  # type: ignore[index]
