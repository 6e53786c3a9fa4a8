"""How many items a data set has at most, where its `__len__` says it: one picture that a network is fitted to, say."""

from __future__ import annotations

import ast

from perflint.analysis.call_graph.given_arguments import given_arguments
from perflint.analysis.elsewhere import definition_of
from perflint.analysis.feasibility.at_nodes import conditions_of
from perflint.analysis.feasibility.attribute_values import values_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.trip_count import length_of
from perflint.analysis.loading.loaders import option
from perflint.analysis.names.refs import CLASS, INSTANCE, Ref, Scope
from perflint.ir.calls import argument, has_unpacking, keyword
from perflint.ir.summary import Value
from perflint.syntax.walk import walk

#: To start workers takes longer than so many items of a pass, and what is made ahead ends with the pass.
_FEW = 8
_DEPTH = 4
_SUBSETS = frozenset({"torch.utils.data.Subset", "torch.utils.data.dataset.Subset"})
_ADDING = frozenset({"append", "extend", "insert"})


def has_few_items(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a pass of a loader is a handful of items, whichever data set it has by default."""
    counts = ctx.once(_counts, call)
    return bool(counts) and all(_is_handful(count) for count in counts)


def may_have_few_items(call: ast.Call, ctx: FileFacts) -> bool:
    """As `has_few_items`, but of one of the data sets between which a user chooses."""
    return any(_is_handful(count) for count in ctx.once(_counts, call))


def _is_handful(count: int | None) -> bool:
    return count is not None and 0 < count <= _FEW


def _counts(call: ast.Call, ctx: FileFacts) -> list[int | None]:
    """How many items each data set of a loader has that no sampler gives again and again."""
    dataset = option(call, "dataset", ctx)
    if dataset is None or argument(call, 3, "sampler") is not None or keyword(call, "batch_sampler") is not None:
        return []
    return _items(dataset, ctx, _DEPTH)


def _items(dataset: ast.expr, ctx: FileFacts, depth: int) -> list[int | None]:
    """The greatest length of each of the data sets that one may be by default; None where it is not told."""
    if not depth:
        return [None]
    given = given_arguments(dataset, ctx)
    if given:
        return [count for item, there in given for count in _items(item, there, depth - 1)]
    origins = [origin for origin in ctx.inference.origins(dataset) if not is_off_by_default(origin, ctx)]
    return [_length_of_one(origin, ctx, depth) for origin in origins]


def is_off_by_default(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether a branch is taken only if a user asks for it."""
    return any(
        ctx.program.is_off_by_default(test if holds else ("not", test), ctx.scope(node))
        for test, holds in conditions_of(node, ctx)
    )


def _greatest(counts: list[int | None]) -> int | None:
    told = [count for count in counts if count is not None]
    return max(told) if told and len(told) == len(counts) else None


def _length_of_one(dataset: ast.expr, ctx: FileFacts, depth: int) -> int | None:
    if isinstance(dataset, ast.Call) and dataset.args and ctx.target(dataset.func) in _SUBSETS:
        return _greatest(_items(dataset.args[0], ctx, depth - 1))
    refs = ctx.refs(dataset)
    made = ctx.project_target(dataset.func) if isinstance(dataset, ast.Call) else None
    call = dataset if isinstance(dataset, ast.Call) and made is not None and made.kind == CLASS else None
    if not refs or any(ref.kind != INSTANCE for ref in refs):
        return None
    return _greatest([_Object(ref, call, ctx).length(depth) for ref in refs])


class _Object:
    """An object of a class of the project, and the call that makes it where that is known."""

    def __init__(self, ref: Ref, call: ast.Call | None, ctx: FileFacts) -> None:
        self._ref, self._call, self._ctx = ref, call, ctx

    def length(self, depth: int) -> int | None:
        """What its `__len__` returns at most."""
        method = self._ctx.program.resolver.method(self._ref, "__len__") if depth else None
        if method is None or not method.path:
            return None
        scope = Scope(method.path, method.name)
        returns = self._ctx.program.function(scope).returns
        return _greatest([self._count(value, scope, depth) for value in returns])

    def _count(self, value: Value, scope: Scope, depth: int) -> int | None:
        """A number: `1`, `self.length`, `len(self.files)`."""
        if isinstance(value, tuple) and value[0] == "const":
            return value[2] if type(value[2]) is int else None
        if isinstance(value, tuple) and value[0] == "call" and value[1] == "len" and len(value[2]) == 1:
            return self._size(value[2][0], scope, depth - 1)
        kept = self._kept(value)
        if kept is None or not depth:
            return None
        given = self._given(*kept)
        if isinstance(given, ast.expr):
            return given.value if isinstance(given, ast.Constant) and type(given.value) is int else None
        return self._count(given, kept[1], depth - 1)

    def _size(self, value: Value, scope: Scope, depth: int) -> int | None:
        """How many things a value holds: written out, or a data set in its turn."""
        if not depth:
            return None
        if isinstance(value, tuple) and value[0] == "seq":
            return len(value[1]) or None
        kept = self._kept(value)
        if kept is not None:
            given = self._given(*kept)
            if isinstance(given, ast.expr):
                found = _greatest(_items(given, self._ctx, depth - 1))
                return length_of(given, self._ctx) if found is None else found
            return None if self._is_added_to(value, kept[1]) else self._size(given, kept[1], depth - 1)
        refs = self._ctx.program.resolver.refs(value, scope)
        if not refs or any(ref.kind != INSTANCE for ref in refs):
            return None
        return _greatest([_Object(ref, None, self._ctx).length(depth - 1) for ref in refs])

    def _kept(self, value: Value) -> tuple[Value, Scope] | None:
        """What an attribute of `self` is given, where that is one thing, and where."""
        if not isinstance(value, str) or not value.startswith("self.") or value.count(".") > 1:
            return None
        resolver, summaries = self._ctx.program.resolver, self._ctx.program.summaries
        for cls in resolver.mro(Ref(CLASS, self._ref.path, self._ref.name)):
            if cls.path and cls.kind == CLASS:
                told = values_of(summaries[cls.path].classes[cls.name], cls, value.removeprefix("self."))
                if told:
                    return told[0] if len(told) == 1 else None
        return None

    def _given(self, value: Value, scope: Scope) -> Value | ast.expr:
        """What the call gives for a parameter of the constructor, or else its default; anything else as it is."""
        facts = self._ctx.program.function(scope)
        if facts.name != "__init__" or not isinstance(value, str):
            return value
        for place, param in enumerate(facts.params):
            if param.name.lstrip("=") == value:
                if self._call is None or has_unpacking(self._call):
                    return None
                given = argument(self._call, place - 1 if not param.name.startswith("=") else 99, value)
                return param.default if given is None else given
        return value

    def _is_added_to(self, value: Value, scope: Scope) -> bool:
        """Whether the method that makes a list puts more into it: `self.files.extend(...)`."""
        found = definition_of(scope, self._ctx)
        return found is None or any(
            isinstance(part, ast.Attribute) and part.attr in _ADDING and found[1].text(part.value) == value
            for part in walk(found[0])
        )
