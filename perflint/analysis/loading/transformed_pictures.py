"""Data sets of pictures and graphs that a library keeps in memory and changes one by one as they are asked for: what a
loader is given, through names, parameters, parts of data sets, results of functions and data sets of the program that
hand on the items of others, and the transforms it was made with.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.call_graph.given_arguments import given_arguments
from perflint.analysis.elsewhere import definition_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.forwards import arguments_by_name
from perflint.analysis.names.refs import CLASS, FUNCTION, INSTANCE, Ref, Scope
from perflint.finding import Heat
from perflint.ir.calls import callee_name, keyword
from perflint.syntax.walk import walk
from perflint.torch_model import loaders, sample_work

_DEPTH = 6
_SPLITS = frozenset(name.rpartition(".")[2] for name in loaders.PASSING_ON)
_OF_PICTURES = "torchvision.datasets."
_OF_GRAPHS = "torch_geometric.datasets."
#: Adds to a list of data sets.
_ADDING = frozenset({"append", "extend"})
#: Steps of a composition from which on they take longer than to hand the picture over: the first makes a tensor.
_LEAST = 2
Place = tuple[ast.expr, FileFacts]


def transforms_pictures(dataset: ast.expr, ctx: FileFacts) -> bool:
    """Whether every data set that one may be is of pictures or graphs that are changed for each sample. One that hands
    on the items of another counts where it lasts: what is made anew for a part of the data is over too soon.
    """
    made = list(_makers(dataset, ctx, _DEPTH, through=ctx.heat(dataset) <= Heat.ONCE))
    return bool(made) and all(_transforms(item, there) for item, there in made)


def _transforms(made: ast.expr, ctx: FileFacts) -> bool:
    refs = ctx.refs(made) if isinstance(made, ast.Call) else ()
    if not refs or not all(not ref.path and ref.name.startswith((_OF_PICTURES, _OF_GRAPHS)) for ref in refs):
        return False
    if all(ref.name in loaders.DECODING_DATASETS for ref in refs):
        return True
    assert isinstance(made, ast.Call)
    given = keyword(made, "transform")
    steps = [] if given is None else list(_makers(given, ctx, _DEPTH))
    works = _composes_several if refs[0].name.startswith(_OF_PICTURES) else _computes_on_graphs
    return bool(steps) and all(works(step) for step, _ in steps)


def _computes_on_graphs(made: ast.expr) -> bool:
    """Whether a transform of graphs, or one of a composition, searches neighbours, triangulates or draws points."""
    return any(isinstance(part, ast.Call) and callee_name(part) in sample_work.GRAPH_TRANSFORMS for part in walk(made))


def _composes_several(made: ast.expr) -> bool:
    if not isinstance(made, ast.Call) or callee_name(made) != "Compose" or not made.args:
        return False
    steps = made.args[0]
    return isinstance(steps, (ast.List, ast.Tuple)) and len(steps.elts) >= _LEAST


def _makers(value: ast.expr, ctx: FileFacts, depth: int, *, through: bool = False) -> Iterator[Place]:
    """The expressions that make what a value may be; `through`, those of the data sets whose items one hands on."""
    for origin in ctx.inference.origins(value):
        further = list(_behind(origin, ctx, through=through)) if depth else []
        for item, there in further:
            yield from _makers(item, there, depth - 1, through=through)
        if not further:
            yield origin, ctx


def _behind(origin: ast.expr, ctx: FileFacts, *, through: bool) -> Iterator[Place]:
    if isinstance(origin, ast.Call):
        yield from _handed_on(origin, (), ctx)
        if through:
            yield from ((item, ctx) for item in _wrapped(origin, ctx))
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
        yield from ((item, ctx) for item in _items(call.args[0], ctx))
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


def _items(value: ast.expr, ctx: FileFacts) -> list[ast.expr]:
    """The data sets of a list that is written out, or that a loop adds to; else the one that is given."""
    bound = ctx.inference.flow.definitions(value) if isinstance(value, ast.Name) else ()
    given = [item.value for item in bound if item.value is not None and not item.path] or [value]
    if isinstance(value, ast.Name):
        uses = ctx.tree.named(value.id, ctx.tree.function_of(value) or ctx.tree.module)
        calls = [ctx.tree.parent(around) for use in uses if isinstance(around := ctx.tree.parent(use), ast.Attribute)]
        given += [call.args[0] for call in calls if isinstance(call, ast.Call) and callee_name(call) in _ADDING]
    found: list[ast.expr] = []
    for item in given:
        if isinstance(item, (ast.List, ast.Tuple)):
            found += item.elts
        else:
            found.append(item.elt if isinstance(item, (ast.ListComp, ast.GeneratorExp)) else item)
    return found or [value]


def _wrapped(call: ast.Call, ctx: FileFacts) -> Iterator[ast.expr]:
    """What the constructor of a data set of the program is given that its items are taken from, each time anew."""
    ref = ctx.project_target(call.func)
    if ref is None or ref.kind != CLASS:
        return
    instance = Ref(INSTANCE, ref.path, ref.name)
    asked, made = (ctx.program.resolver.method(instance, name) for name in ("__getitem__", "__init__"))
    found = definition_of(Scope(asked.path, asked.name), ctx) if asked is not None else None
    if found is None or made is None or found[0].decorator_list:
        return
    parts = [
        part for part in walk(found[0]) if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Attribute)
    ]
    if any(isinstance(part.ctx, ast.Store) for part in parts):
        return  # what it keeps it need not make again
    asks = {found[1].text(part.value) for part in parts}
    facts = ctx.program.function(Scope(made.path, made.name))
    kept = ctx.program.summaries[made.path].classes[facts.in_class].attributes
    given = arguments_by_name(call, facts)
    words = [value for name, values in kept.items() if f"self.{name}" in asks for value, _ in values]
    inner = [given[word] for word in words if isinstance(word, str) and word in given]
    # Beside the data set there may be indices to pick from, or labels.
    yield from [item for item in inner if transforms_pictures(item, ctx)] or inner
