"""Modules whose parameters somebody else takes the gradients from: a function they are given to, their constructor."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from perflint.api import FUNCTION, INSTANCE, CallFacts, Context, FunctionFacts, Ref, Scope, Tag, last, pattern

from ._callees import last_of
from ._followed import forwards_behind, has_no_graph
from ._forwards import FORWARD_METHODS

#: Give the parameters of a module.
_PARAMETERS = ("parameters", "named_parameters")
#: Parameters of constructors that decide whether a module learns, by the value with which it does not.
_LEARNS = pattern(r"^(?:requires?_?grads?|trainable|train|finetune|fine_tune|learnable|update|unfreeze)$")
_STAYS = pattern(r"^(?:freeze|frozen|fix|fixed|freeze_(?:weights|model|encoder|backbone|all))$")
#: Layers of torch that have some.
_LAYERS = pattern(
    r"^(?:Linear|Bilinear|Conv|Embedding|Transformer|LSTM|GRU|RNN|MultiheadA|Parameter$|BatchNorm|LayerN)"
)
_DEPTH = 3

_Given = dict[str, Any]


def is_frozen_elsewhere(forward: ast.Call, ctx: Context, depth: int = _DEPTH) -> bool:
    """Whether the parameters of what runs take no gradients, by a function that the model is given to or by its own
    constructor, and nothing that it is given comes from a model that is known to learn.
    """
    if not (_is_given_to_a_freezer(forward, ctx) or _is_made_frozen(forward, ctx)):
        return False
    given = [*forward.args, *(item.value for item in forward.keywords)]
    return all(
        has_no_graph(before, ctx)
        or not _has_layers_itself(before, ctx)
        or (depth > 0 and is_frozen_elsewhere(before, ctx, depth - 1))
        for item in given
        for before in forwards_behind(item, ctx, _DEPTH)
    )


def _has_layers_itself(forward: ast.Call, ctx: Context) -> bool:
    """Whether what runs is known to hold layers with parameters: a pyramid of scaled images has none."""
    kind = ctx.kind(_model(forward))
    if kind.path:
        return _has_layers(Ref(INSTANCE, kind.path, kind.qualified), ctx, _DEPTH)
    return bool(_LAYERS.match(last(kind.qualified)))


def _has_layers(module: Ref, ctx: Context, depth: int) -> bool:
    made = ctx.program.resolver.method(module, "__init__")
    if made is None or made.path not in ctx.program.summaries:
        return False
    facts, scope = ctx.program.function(Scope(made.path, made.name)), Scope(made.path, made.name)
    if any(_LAYERS.match(word) for word in facts.identifiers.split()):
        return True
    holder = ctx.program.summaries[made.path].classes.get(facts.in_class)
    values = [value for found in (holder.attributes if holder else {}).values() for value, _ in found]
    return depth > 0 and any(
        ref.kind == INSTANCE and ref.path in ctx.program.summaries and _has_layers(ref, ctx, depth - 1)
        for value in values
        for ref in ctx.program.refs(value, scope)
    )


def _model(forward: ast.Call) -> ast.expr:
    func = forward.func
    return func.value if isinstance(func, ast.Attribute) and func.attr in FORWARD_METHODS else func


# By a function that the model is given to.


def _is_given_to_a_freezer(forward: ast.Call, ctx: Context) -> bool:
    """Whether this file hands the model to functions of the project, whatever they are called, that set `requires_grad`
    on all its parameters, and never but to False: what is frozen and thawed by turns has a graph now and then.
    """
    model, around = ctx.text(_model(forward)), ctx.tree.class_of(forward)
    found = set()
    for qualname, facts in ctx.summary.functions.items():
        # Attributes of one name in two classes are two models.
        own = around is None or not facts.in_class or last(facts.in_class) in _names(around)
        for call in facts.calls:
            if call.args or call.keywords:
                found |= _settings(call, Scope(ctx.path, qualname), model, ctx, own=own)
    return found == {False}


def _names(around: ast.ClassDef) -> set[str]:
    """The names of a class and of its bases."""
    bases = {base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in around.bases}
    return {around.name, *bases}


def _settings(call: CallFacts, scope: Scope, model: str, ctx: Context, *, own: bool) -> set[bool]:
    """What a call sets `requires_grad` of the model's parameters to."""
    facts = ctx.program.function(scope)
    values = [*call.args, *(value for _, value in call.keywords)]

    def is_meant(value: Any) -> bool:
        return any(_is_of(name, model, own=own) for name in _models_in(value, facts))

    if not any(is_meant(value) for value in values):
        return set()
    found: set[bool] = set()
    for ref in ctx.program.refs(call.func, scope):
        if ref.kind == FUNCTION and ref.path in ctx.program.summaries:
            callee = ctx.program.function(Scope(ref.path, ref.name))
            given = _given(callee, call.args, call.keywords)
            for name, value in given.items():
                if is_meant(value):
                    found |= _set_by(Scope(ref.path, ref.name), name, given, ctx)
    return found


def _models_in(value: Any, facts: FunctionFacts) -> Iterator[str]:
    """The names of what is handed on: `a`, each of `[a, b]`, `a.parameters()`, and what a loop goes through."""
    if isinstance(value, str):
        yield value
        for bound in facts.binds.get(value, ()):
            if isinstance(bound, tuple) and bound[0] == "item" and isinstance(bound[1], tuple) and bound[1][0] == "seq":
                yield from _models_in(bound[1], facts)
    elif isinstance(value, tuple) and value[0] == "seq":
        for item in value[1]:
            yield from _models_in(item, facts)
    elif isinstance(value, tuple) and value[0] == "call" and last_of(value[1]) in _PARAMETERS:
        yield from _models_in(value[1].rpartition(".")[0] if isinstance(value[1], str) else None, facts)


def _is_of(name: str, model: str, *, own: bool) -> bool:
    """Whether a name is the model's, or that of what holds it."""
    of_self = name.startswith("self.") or name == "self"
    if of_self and model.startswith("self."):
        return own and f"{model}.".startswith(f"{name}.")
    return f"{model}.".startswith(f"{name}.") or last(name) == last(model)


def _given(facts: FunctionFacts, args: tuple[Any, ...], keywords: tuple[tuple[str, Any], ...]) -> _Given:
    """What a call gives each parameter, or what it has by default; `None` where that cannot be told."""
    params = list(facts.params)
    if facts.in_class and params and params[0].name in ("self", "cls"):
        params = params[1:]
    found: _Given = {param.name.lstrip("=*"): param.default for param in params}
    for place, param in enumerate(params):
        if param.name.startswith("*"):
            if not param.name.startswith("**"):
                found[param.name.lstrip("*")] = ("seq", args[place:])
            break
        if place < len(args) and not param.name.startswith("="):
            found[param.name] = args[place]
    found.update((name, value) for name, value in keywords if name)
    return found


def _set_by(scope: Scope, name: str, given: _Given, ctx: Context, depth: int = _DEPTH) -> set[bool]:
    """What a function sets `requires_grad` to on parameters of what it is given for `name`; empty where it does not, or
    where that cannot be told. Whether it sets it on all of them is not seen: part of a teacher may still learn.
    """
    facts = ctx.program.function(scope)
    things = _things(name, facts)
    values: list[Any] = [value for thing in things for value in facts.binds.get(f"{thing}.requires_grad", ())]
    found: set[bool] = set()
    for call in facts.calls:
        if isinstance(call.func, str) and last(call.func) == "requires_grad_":
            if call.func.rpartition(".")[0] in things:
                told = [value for key, value in call.keywords if key == "requires_grad"]
                values += call.args[:1] or told or [("const", "bool", True)]
        elif depth > 0 and any(value in things for value in call.args):
            found |= _handed_on(call, scope, things, given, ctx, depth - 1)
    meant = [_told(value, given) for value in values]
    return found | {value for value in meant if value is not None}


def _things(name: str, facts: FunctionFacts) -> set[str]:
    """The names under which a function has a module, one of several, or a parameter of theirs."""
    found = {name}
    for loop in facts.loops:
        over = loop.iterable
        if isinstance(over, tuple) and over[0] == "call" and last_of(over[1]) in _PARAMETERS:
            over = over[1].rpartition(".")[0] if isinstance(over[1], str) else None
        if isinstance(over, str) and over in found:
            found.update(loop.targets)
    return found


def _handed_on(call: CallFacts, scope: Scope, things: set[str], given: _Given, ctx: Context, depth: int) -> set[bool]:
    found: set[bool] = set()
    for ref in ctx.program.refs(call.func, scope):
        if ref.kind != FUNCTION or ref.path not in ctx.program.summaries:
            continue
        inner = Scope(ref.path, ref.name)
        further = _given(ctx.program.function(inner), call.args, call.keywords)
        for name, value in further.items():
            if isinstance(value, str) and value in things:
                told = {key: given.get(item) if isinstance(item, str) else item for key, item in further.items()}
                found |= _set_by(inner, name, told, ctx, depth)
    return found


def _told(value: Any, given: _Given) -> bool | None:
    """A truth value as written, or as the parameter of that name has it."""
    if isinstance(value, str):
        value = given.get(value)
    return bool(value[2]) if isinstance(value, tuple) and value[:2] == ("const", "bool") else None


# By its own constructor.


def _is_made_frozen(forward: ast.Call, ctx: Context) -> bool:
    """Whether the constructor of the class takes the gradients from all parameters of the object, as it is called."""
    model = _model(forward)
    kind = ctx.kind(model)
    if kind.tag is not Tag.MODULE or not kind.path or not kind.qualified:
        return False
    made = ctx.program.resolver.method(Ref(INSTANCE, kind.path, kind.qualified), "__init__")
    if made is None or made.path not in ctx.program.summaries:
        return False
    scope = Scope(made.path, made.name)
    calls = list(_constructions(model, last(kind.qualified), ctx)) or [("call", "", (), ())]
    return all(_freezes_itself(scope, call, ctx) for call in calls)


def _freezes_itself(scope: Scope, call: Any, ctx: Context) -> bool:
    facts = ctx.program.function(scope)
    given = _given(facts, call[2], call[3])
    if _set_by(scope, "self", given, ctx) != {False}:
        return False
    asked = [(name, _told(value, {})) for name, value in given.items()]
    return not any(
        (value is True and _LEARNS.match(name)) or (value is False and _STAYS.match(name)) for name, value in asked
    )


def _constructions(model: ast.expr, name: str, ctx: Context) -> Iterator[Any]:
    """The calls of a class that what runs is set to: of an attribute in its class, of a name in its function."""
    if isinstance(model, ast.Attribute):
        around = ctx.tree.class_of(model)
        facts = ctx.summary.classes.get(around.name) if around is not None else None
        values = [value for value, _ in facts.attributes.get(model.attr, ())] if facts is not None else []
    elif isinstance(model, ast.Name):
        values = list(ctx.facts(model).binds.get(model.id, ()))
    else:
        values = []
    for value in values:
        yield from _calls_of(name, value)


def _calls_of(name: str, value: Any) -> Iterator[Any]:
    if not isinstance(value, tuple):
        return
    if value[:1] == ("call",) and last_of(value[1]) == name:
        yield value
        return
    for part in value:
        yield from _calls_of(name, part)
