"""Whether a loader gives the same items in each pass: its data set and its collate function draw no random numbers, by
all that they call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.call_graph.given_arguments import given_arguments
from perflint.analysis.elsewhere import definition_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.loading.few_items import is_off_by_default
from perflint.analysis.loading.loaders import is_plain_loader, option
from perflint.analysis.loading.sample_cost import datasets_of
from perflint.analysis.names.refs import EXTERNAL_INSTANCE, FUNCTION, INSTANCE, Ref, Scope
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import callee_name, is_constant
from perflint.syntax.bindings import Binding
from perflint.syntax.walk import walk
from perflint.torch_model.effects import Effect, of_function
from perflint.torch_model.modules import makes_module
from perflint.torch_model.names import canonical

#: Methods of texts, containers, arrays, tensors, pictures, tables and tokenizers that give the same for the same.
_STEADY = frozenset(
    "strip split rsplit lower upper replace join startswith endswith format encode decode append extend items keys "
    "values get copy index sort "
    "astype reshape view transpose permute squeeze unsqueeze flatten repeat expand clone detach contiguous float long "
    "int half double bool size dim numel sum mean max min ne eq fill_ zero_ numpy tolist item cpu to cuda from_numpy "
    "convert resize iloc loc tokenize convert_tokens_to_ids encode_plus batch_encode_plus".split()
)
_STEADY_DATASETS = frozenset({"torch.utils.data.TensorDataset"})
#: What goes through a loader and adds a count or a bar.
_AROUND = frozenset({"enumerate", "tqdm", "trange", "track", "iter"})
_DEPTH = 4


def has_same_items(loop: ast.For, ctx: FileFacts) -> bool:
    """Whether a loop goes over a loader whose items are the same in each pass, on the route that makes the loop hot,
    where no user has changed an option.
    """
    found = list(_loaders(loop.iter, ctx, _DEPTH))
    return bool(found) and all(_gives_same(call, there) for call, there in found)


def _loaders(value: ast.expr, ctx: FileFacts, depth: int) -> Iterator[tuple[ast.expr, FileFacts]]:
    """What makes a loader: through parameters, the functions that hand it back, and Accelerate's `prepare`."""
    while isinstance(value, ast.Call) and callee_name(value) in _AROUND and value.args:
        value = value.args[0]
    given = given_arguments(value, ctx) if depth else []
    for item, there in given:
        yield from _loaders(item, there, depth - 1)
    if given:
        return
    for origin in ctx.inference.origins(value):
        further = list(_behind(origin, ctx)) if depth and not is_off_by_default(origin, ctx) else []
        for item, there in further:
            yield from _loaders(item, there, depth - 1)
        if not further and not is_off_by_default(origin, ctx):
            yield origin, ctx


def _behind(origin: ast.expr, ctx: FileFacts) -> Iterator[tuple[ast.expr, FileFacts]]:
    """What a function of the project hands back for a loader, or `prepare` is given."""
    if isinstance(origin, ast.Call):
        yield from _handed_back(origin, (), ctx)
    for made in ctx.inference.flow.definitions(origin) if isinstance(origin, ast.Name) else ():
        if made.binding is not Binding.ASSIGN or not isinstance(made.value, ast.Call) or len(made.path) > 1:
            continue
        place = made.path[0] if made.path else 0
        if callee_name(made.value) == "prepare" and isinstance(place, int) and place < len(made.value.args):
            yield made.value.args[place], ctx
        else:
            yield from _handed_back(made.value, made.path, ctx)


def _handed_back(call: ast.Call, path: tuple[int | str, ...], ctx: FileFacts) -> Iterator[tuple[ast.expr, FileFacts]]:
    ref = ctx.project_target(call.func)
    found = definition_of(_scope(ref), ctx) if ref is not None and ref.kind == FUNCTION else None
    if found is None:
        return
    for part in found[1].body(found[0]):
        if isinstance(part, ast.Return) and part.value is not None:
            value: ast.expr = part.value
            if path and isinstance(value, ast.Tuple) and isinstance(path[0], int) and path[0] < len(value.elts):
                value = value.elts[path[0]]
            yield value, found[1]


def _gives_same(call: ast.expr, ctx: FileFacts) -> bool:
    if not isinstance(call, ast.Call) or not is_plain_loader(call, ctx):
        return False
    dataset, collate = option(call, "dataset", ctx), option(call, "collate_fn", ctx)
    if dataset is None or not (collate is None or is_constant(collate, None) or _collates_steadily(collate, ctx)):
        return False
    origins = datasets_of(dataset, ctx)
    return bool(origins) and all(_is_steady(origin, ctx) for origin in origins)


def _collates_steadily(collate: ast.expr, ctx: FileFacts) -> bool:
    refs = ctx.refs(collate)
    return bool(refs) and all(ref.kind == FUNCTION and _draws_nothing(_scope(ref), ctx, _DEPTH) for ref in refs)


def _is_steady(dataset: ast.expr, ctx: FileFacts) -> bool:
    kind = ctx.kind(dataset)
    known = kind.tag is Tag.DATASET and kind.path
    refs = (Ref(INSTANCE, kind.path, kind.qualified),) if known else ctx.refs(dataset)
    return bool(refs) and all(_items_are_steady(ref, ctx) for ref in refs)


def _items_are_steady(ref: Ref, ctx: FileFacts) -> bool:
    if ref.kind == EXTERNAL_INSTANCE:
        return canonical(ref.name) in _STEADY_DATASETS
    method = ctx.program.resolver.method(ref, "__getitem__") if ref.kind == INSTANCE else None
    return method is not None and bool(method.path) and _draws_nothing(_scope(method), ctx, _DEPTH)


def _scope(ref: Ref) -> Scope:
    return Scope(ref.path, ref.name)


def _draws_nothing(scope: Scope, ctx: FileFacts, depth: int) -> bool:
    """Whether a function is known to give the same for the same arguments: each call that it makes is read, or is one
    of a library function that draws nothing.
    """
    found = definition_of(scope, ctx) if depth else None
    if found is None:
        return False
    function, there = found
    for part in walk(function):  # with the functions in it
        if isinstance(part, ast.Call):
            callees = _callees(part, there)
            if not all(_draws_nothing(callee, ctx, depth - 1) for callee in callees):
                return False
            if not callees and not _is_steady_call(part, there):
                return False
    return True


def _callees(call: ast.Call, ctx: FileFacts) -> list[Scope]:
    """The functions of the project that a call runs."""
    index, scope = ctx.call_index(call), ctx.scope(call)
    edges = ctx.program.graph.outgoing.get(scope, ()) if index is not None else ()
    return [edge.callee for edge in edges if edge.index == index]


def _is_steady_call(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call of what is no function of the project is known to draw nothing."""
    target = ctx.target(call.func)
    if target is not None:
        done = of_function(target)
        # A module may draw, as dropout and augmentations do.
        if Effect.DRAWS in done or makes_module(target):
            return False
        if Effect.UNKNOWN not in done:
            return True
    return isinstance(call.func, ast.Attribute) and call.func.attr in _STEADY
