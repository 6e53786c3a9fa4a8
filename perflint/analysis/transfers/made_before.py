"""Where on the host a tensor was made that is moved to the device afterwards: in the same function, in one that is
called and gives it back, alone or as a part of a record, or in the caller on the hot route.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.elsewhere import definition_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import CLASS, FUNCTION, Scope
from perflint.analysis.transfers.moves import constructor
from perflint.analysis.values.kind import Place
from perflint.finding import Heat, Hop
from perflint.ir.calls import has_unpacking, keyword
from perflint.syntax.bindings import Binding
from perflint.torch_model import tensors

#: How many functions deep a value is followed.
_CALLS = 3
_MAKERS = tensors.CONSTRUCTORS | tensors.LIKE_CONSTRUCTORS | frozenset(tensors.LEGACY_DTYPES)

_VIEWS = tensors.VIEW_METHODS | tensors.CAST_METHODS


def made_before(moved: ast.expr, code: str, ctx: FileFacts) -> tuple[Hop, ...]:
    """The places on the hot path, other than the move's own line, where what is moved was made on the host: the same
    defect as the move, which the rule `code` tells of.
    """
    places = (
        Hop(there.path, call.lineno, "made on the host here", code=code)
        for call, there in _made(moved, ctx, _CALLS)
        if (there.path, call.lineno) != (ctx.path, moved.lineno) and there.heat(call) >= Heat.STEP
    )
    return tuple(dict.fromkeys(places))


def _made(value: ast.expr, ctx: FileFacts, calls: int) -> Iterator[tuple[ast.Call, FileFacts]]:
    made = constructor(value, _MAKERS, ctx)
    if made is not None:
        if ctx.kind(made).place is Place.HOST:
            yield made, ctx
    elif isinstance(value, ast.Name):
        yield from _named(value, ctx, calls)
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _VIEWS:
        yield from _made(value.func.value, ctx, calls)
    elif isinstance(value, ast.Call):
        for returned, there in _returned(value, ctx, calls):
            yield from _made(returned, there, calls - 1)
    elif isinstance(value, ast.Attribute):
        for record, there in _records(value.value, ctx, calls):
            field = _field(record, value.attr, there)
            if field is not None:
                yield from _made(field, there, calls - 1)


def _named(name: ast.Name, ctx: FileFacts, calls: int) -> Iterator[tuple[ast.Call, FileFacts]]:
    for item in ctx.inference.flow.definitions(name):
        if item.binding is Binding.PARAM:
            given = ctx.given_on_route(name) if calls else None
            if given is not None:
                yield from _made(*given, calls - 1)
        elif item.binding in (Binding.ASSIGN, Binding.WALRUS) and item.value is not None and not item.path:
            if name.id not in {part.id for part in ast.walk(item.value) if isinstance(part, ast.Name)}:
                yield from _made(item.value, ctx, calls)


def _returned(call: ast.Call, ctx: FileFacts, calls: int) -> Iterator[tuple[ast.expr, FileFacts]]:
    """What a function of the program returns."""
    ref = ctx.project_target(call.func) if calls else None
    defined = definition_of(Scope(ref.path, ref.name), ctx) if ref is not None and ref.kind == FUNCTION else None
    if defined is not None:
        node, there = defined
        yield from ((one, there) for one in there.inference.classes.results(node)[0] if one is not None)


def _records(value: ast.expr, ctx: FileFacts, calls: int) -> Iterator[tuple[ast.Call, FileFacts]]:
    """The calls that make the record that a value is, by its class's name or, in a method of the class, by `cls`."""
    if isinstance(value, ast.Name):
        for item in ctx.inference.flow.definitions(value):
            if item.binding is Binding.ASSIGN and isinstance(item.value, ast.Call) and not item.path:
                yield from _records(item.value, ctx, calls)
    elif isinstance(value, ast.Call):
        ref = ctx.project_target(value.func)
        if ref is not None and ref.kind == FUNCTION:
            for returned, there in _returned(value, ctx, calls):
                yield from _records(returned, there, calls - 1)
        elif not has_unpacking(value):
            yield value, ctx


def _field(record: ast.Call, name: str, ctx: FileFacts) -> ast.expr | None:
    """What a record is given for a field: by its name, or by its place among the fields that the class declares."""
    if (given := keyword(record, name)) is not None:
        return given
    ref = ctx.project_target(record.func)
    facts = ctx.program.summaries[ref.path].classes.get(ref.name) if ref is not None and ref.kind == CLASS else None
    fields = list(facts.annotations) if facts is not None else []
    place = fields.index(name) if name in fields else len(record.args)
    return record.args[place] if place < len(record.args) else None
