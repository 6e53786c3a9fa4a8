"""A forward that a function of the project runs for its caller, and what of the caller's it depends on."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable
from typing import Any, NamedTuple

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.forwards import CHANGES, DRAWS, FORWARD_METHODS, arguments_by_name
from perflint.analysis.invariants.in_loops import is_fixed, is_touched, objects_in
from perflint.analysis.names.refs import FUNCTION, Ref, Scope
from perflint.analysis.values.kind import Tag
from perflint.finding import Hop
from perflint.ir.callees import last_name as last_of
from perflint.ir.calls import arguments_of
from perflint.ir.summary import MODULE, CallFacts, FunctionFacts

_DEEP = 6
#: Lists are appended to for the result, and `update` fills a dict: the model is not changed by it.
_UNSTEADY = (CHANGES | DRAWS) - {"append", "push", "update"}
#: Lists, sets and dicts that begin with nothing in them.
_EMPTY = (("seq", ()), ("map", ()), *(("call", name, (), ()) for name in ("list", "set", "dict")))


class Behind(NamedTuple):
    """The forward `func` at `place`. It depends on the `arguments` of the call, one of which may be the `model`, and on
    `state`: attributes of what the call is a method of (`("model",)`).
    """

    func: str
    place: Hop
    arguments: tuple[ast.expr, ...]
    model: ast.expr | None
    state: tuple[str, ...]


def forward_behind(call: ast.Call, ctx: FileFacts) -> Behind | None:
    """The first forward without gradients in the function that is called. None where there is none, where it depends on
    what cannot be followed, or where the function trains or draws numbers.
    """
    ref = ctx.project_target(call.func)
    if ref is None or ref.kind != FUNCTION or any(isinstance(item, ast.Starred) for item in call.args):
        return None
    scope = Scope(ref.path, ref.name)
    facts = ctx.program.function(scope)
    if facts.is_generator or not _is_steady(facts):
        return None
    given = arguments_by_name(call, facts)
    for item in facts.calls:
        if not _runs_without_grad(item, scope, facts, ctx):
            continue
        names = _Sources(facts, scope, ctx).of_call(item)
        if names is not None and names.keys() <= given.keys() | {"self"}:
            if ctx.program.trains(scope):
                return None
            wanted = tuple(given[name] for name in names if name != "self")
            model = given.get(item.func.partition(".")[0])
            place = Hop(scope.path, item.line, "the forward")
            return Behind(item.func, place, wanted, model, tuple(names.get("self", ())))
    return None


def _is_steady(facts: FunctionFacts) -> bool:
    """Whether the function neither draws numbers nor changes a model, as far as the names of what it calls tell."""
    return not any(_is_unsteady(last_of(item.func)) for item in facts.calls)


def _is_unsteady(name: str) -> bool:
    return name in _UNSTEADY or (name.endswith("_") and not name.endswith("__"))


def _runs_without_grad(item: CallFacts, scope: Scope, facts: FunctionFacts, ctx: FileFacts) -> bool:
    """Whether a call of the function runs a model with gradients off, once."""
    if not isinstance(item.func, str) or not (item.args or item.keywords) or facts.loops_around(item.context):
        return False
    name = last_of(item.func)
    if name == "run_with_cache":
        return True  # a name that only models of TransformerLens have; what it keeps is looked at, not trained on
    if not ctx.program.grad_off(scope, item.context):
        return False
    model = item.func.rpartition(".")[0] if name in FORWARD_METHODS else item.func
    refs = ctx.program.refs(model, scope)
    return bool(refs) and ctx.inference.of_refs(refs).tag is Tag.MODULE


class _Sources:
    """What values of a function come from: its parameters by name, and under "self" the attributes that are read."""

    def __init__(self, facts: FunctionFacts, scope: Scope, ctx: FileFacts) -> None:
        self._facts = facts
        self._scope = scope
        self._ctx = ctx
        self._params = {param.name.lstrip("*=") for param in facts.params}
        self._targets = {name for loop in facts.loops for name in loop.targets}
        self._found: dict[str, dict[str, None]] = {}
        self._followed: set[str] = set()

    def of_call(self, item: CallFacts) -> dict[str, dict[str, None]] | None:
        """What a call depends on; None where that cannot be followed."""
        name = last_of(item.func)
        model = item.func.rpartition(".")[0] if name in FORWARD_METHODS else item.func
        values = [model, *item.args, *(value for _, value in item.keywords)]
        return self._found if all(self._follow(value, _DEEP) for value in values) else None

    def _follow(self, value: Any, depth: int) -> bool:
        if value is None or depth == 0:
            return False
        if isinstance(value, str):
            return self._name(value, depth)
        kind = value[0]
        if kind == "const":
            return True
        if kind == "call":
            return self._call(value, depth)
        if value in _EMPTY:
            return False  # filled later, with what cannot be told
        if kind in ("seq", "either"):
            return all(self._follow(item, depth - 1) for item in value[1])
        if kind == "map":
            return all(self._follow(item, depth - 1) for _, item in value[1])
        if kind == "item" and value[2] is None:
            return False  # by an index that is no constant: `table[users]`
        if kind in ("item", "attr"):
            return self._follow(value[1], depth - 1)
        return False

    def _name(self, dotted: str, depth: int) -> bool:
        first, _, rest = dotted.partition(".")
        if first in self._targets:
            return False
        if first == "self":
            self._found.setdefault("self", {})[rest] = None
            return bool(rest)
        if first in self._params:
            self._found.setdefault(first, {})
        if first in self._followed:
            return True
        self._followed.add(first)
        if first in self._facts.unclear:
            return False
        made = self._facts.binds.get(first)
        if made is None:
            return first in self._params or self._is_global(first)
        return all(self._follow(value, depth - 1) for value in made)

    def _is_global(self, name: str) -> bool:
        summary = self._ctx.program.summaries[self._scope.path]
        return (
            name in summary.imports
            or name in summary.functions
            or name in summary.classes
            or name in summary.functions[MODULE].binds
            or hasattr(builtins, name)
        )

    def _call(self, value: Any, depth: int) -> bool:
        _, func, args, keywords = value
        if not isinstance(func, str):
            return self._follow(func, depth - 1) and self._follow_all(args, keywords, depth)
        return self._is_plain(func, depth) and self._follow_all(args, keywords, depth)

    def _follow_all(self, args: tuple[Any, ...], keywords: tuple[tuple[str, Any], ...], depth: int) -> bool:
        return all(self._follow(item, depth - 1) for item in (*args, *(item for _, item in keywords)))

    def _is_plain(self, func: str, depth: int) -> bool:
        """Follow what a callee is a method of; False where what is called draws numbers or changes something."""
        if _is_unsteady(last_of(func)):
            return False
        holder = func.rpartition(".")[0]
        for ref in self._ctx.program.refs(func, self._scope):
            if ref.kind == FUNCTION and not self._is_steady(ref):
                return False
        return not holder or holder == "self" or self._name(holder, depth)

    def _is_steady(self, ref: Ref) -> bool:
        return _is_steady(self._ctx.program.function(Scope(ref.path, ref.name)))


def runs_every_turn(call: ast.Call, found: Behind, loop: ast.For | ast.AsyncFor | ast.While, ctx: FileFacts) -> bool:
    """Whether the forward gets the same on every turn of a loop, while something else about the call does not."""
    if not all(is_fixed(item, loop, ctx) for item in found.arguments):
        return False
    if is_touched({name for item in found.arguments for name in objects_in(item)}, call, loop, ctx):
        return False
    if is_changed(call, found, stores_in(loop, ctx), ctx) or _is_set_by_calls(call, found, loop, ctx):
        return False
    varies = not all(is_fixed(item, loop, ctx) for item in arguments_of(call))
    return varies or any(_is_of(store, call, ctx) for store in stores_in(loop, ctx))


def is_changed(call: ast.Call, found: Behind, stores: Iterable[ast.expr], ctx: FileFacts) -> bool:
    """Whether one of the stores is to what the forward reads of the object that the call is a method of."""
    if not isinstance(call.func, ast.Attribute):
        return False
    holder = ctx.text(call.func.value)
    read = [f"{holder}.{name}." for name in found.state]
    for store in stores:
        changed = store
        while isinstance(changed, ast.Subscript):
            changed = changed.value
        written = f"{ctx.text(changed)}."
        if any(written.startswith(item) or item.startswith(written) for item in read):
            return True
    return False


def stores_in(region: ast.AST, ctx: FileFacts) -> list[ast.expr]:
    """The names, attributes and items that are set in a region."""
    return [
        part
        for part in ctx.tree.walk(region)
        if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load)
    ]


def _is_of(store: ast.expr, call: ast.Call, ctx: FileFacts) -> bool:
    """Whether what is set is an attribute of the object that the call is a method of."""
    return (
        isinstance(store, ast.Attribute)
        and isinstance(call.func, ast.Attribute)
        and ctx.text(store.value) == ctx.text(call.func.value)
    )


def _is_set_by_calls(call: ast.Call, found: Behind, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether another method that the loop calls on the same object sets what the forward reads of it."""
    if not isinstance(call.func, ast.Attribute) or not found.state:
        return False
    holder, read = ctx.text(call.func.value), {name.partition(".")[0] for name in found.state}
    for other in ctx.tree.walk(loop):
        if not isinstance(other, ast.Call) or not isinstance(other.func, ast.Attribute):
            continue
        if ctx.text(other.func.value) != holder or other.func.attr == call.func.attr:
            continue
        ref = ctx.project_target(other.func)
        if ref is None or read & _set_in(ref, ctx):
            return True
    return False


def _set_in(ref: Ref, ctx: FileFacts) -> set[str]:
    """The attributes of its object that a method sets."""
    facts = ctx.program.function(Scope(ref.path, ref.name))
    holder = ctx.program.summaries[ref.path].classes.get(facts.in_class)
    values = holder.attributes.items() if holder is not None else ()
    return {name for name, settings in values if any(place == ref.name for _, place in settings)}


def runs_given_model(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a function of the project runs a model that it is given, without gradients and without chance."""
    ref = ctx.project_target(call.func)
    if ref is None or ref.kind != "function":
        return False
    scope = Scope(ref.path, ref.name)
    facts = ctx.program.function(scope)
    if facts.is_generator or not facts.returns:
        return False
    names = {param.name for param in facts.params}
    runs = False
    for item in facts.calls:
        dotted = item.func if isinstance(item.func, str) else ""
        if dotted.rpartition(".")[2] in DRAWS | CHANGES:
            return False
        if dotted in names and _is_given_module(dotted, call, facts.params, ctx):
            runs = runs or ctx.program.grad_off(scope, item.context)
    return runs and not ctx.program.trains(scope)


def _is_given_module(name: str, call: ast.Call, params: tuple[object, ...], ctx: FileFacts) -> bool:
    """Whether the argument passed for a parameter is a module."""
    ordered = [getattr(param, "name", "") for param in params]
    position = ordered.index(name)
    given = next((item.value for item in call.keywords if item.arg == name), None)
    if given is None and position < len(call.args):
        given = call.args[position]
    if given is None or isinstance(given, ast.Starred):
        return False
    kind = ctx.kind(given)
    return kind.tag is Tag.MODULE or (not kind.known and ctx.text(given).rpartition(".")[2].endswith("model"))
