"""What iterating or indexing a value gives: elements of containers, batches of loaders, what generators yield."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from perflint.analysis.names import namespaces
from perflint.analysis.names.contents import Contents
from perflint.analysis.names.hierarchy import Hierarchy
from perflint.analysis.names.module_names import element_names
from perflint.analysis.names.refs import (
    BATCH,
    CLASS,
    EXTERNAL,
    FUNCTION,
    IDENTITY,
    INSTANCE,
    MODULE_REF,
    ParamValues,
    Ref,
    Refs,
    Scope,
    few,
    given,
    handed_back,
    instance_of,
)
from perflint.analysis.names.results import Results
from perflint.analysis.names.written import Written
from perflint.ir.summary import MODULE, FunctionFacts, Summary, Value
from perflint.torch_model import wrappers
from perflint.torch_model.names import canonical

_DEPTH = 6
_DEEPEST_ELEMENTS = 20
_PREPARE = wrappers.PREPARE_METHODS
_CONTAINERS = frozenset(
    "torch.nn.ModuleList torch.nn.Sequential torch.nn.ModuleDict builtins.list builtins.tuple builtins.dict "
    "builtins.set collections.OrderedDict builtins.zip builtins.enumerate".split()
)
_SEQUENTIAL = "torch.nn.Sequential"
#: Values that nothing is known to come out of.
_HOLDING_NOTHING = frozenset({"const", "table", "lambda"})


class Resolving(Protocol):
    """What iteration asks of the resolver that it answers for."""

    summaries: Mapping[str, Summary]
    cuts: int
    leans: int
    param_values: ParamValues | None
    contents: Contents
    results: Results

    @property
    def has_provisional(self) -> bool: ...

    def refs(self, value: Value, scope: Scope) -> Refs: ...

    def is_loader(self, ref: Ref) -> bool: ...

    def offered(self, path: str) -> Refs: ...

    def has_loader(self, refs: Refs) -> bool: ...

    def cut(self) -> None: ...

    def keep(self, memo: dict[Any, Any], key: object, found: Refs, cuts: int) -> None: ...


class Iteration:
    """Answers for one resolver, remembered as its own are."""

    def __init__(self, resolver: Resolving, hierarchy: Hierarchy, written: Written) -> None:
        self.resolver = resolver
        self.hierarchy = hierarchy
        self.written = written
        #: None marks what is being evaluated.
        self.memo: dict[tuple[Value, Scope, object], Refs | None] = {}
        #: What is known for good, whatever turns out about calls.
        self._kept: dict[tuple[Value, Scope, object], Refs] = {}
        self.depth = 0

    def elements(self, value: Value, scope: Scope, index: object = None) -> Refs:
        """What iterating `value` gives, or indexing it with `index`."""
        if value is None or (type(value) is tuple and value[0] in _HOLDING_NOTHING):
            return ()
        key = (value, scope, index)
        if key in self._kept:
            return self._kept[key]
        memo = self.memo
        if key in memo:
            known = memo[key]
            if known is not None:
                self.resolver.leans += 1
                return known
            self.resolver.cut()
            return ()
        if self.depth > _DEEPEST_ELEMENTS:
            self.resolver.leans += 1
            return ()
        memo[key] = None
        cuts, leans = self.resolver.cuts, self.resolver.leans
        self.depth += 1
        found = few(self._elements(value, scope, index))
        self.depth -= 1
        if leans == self.resolver.leans and not self.resolver.has_provisional:
            del memo[key]
            self._kept[key] = found
        else:
            self.resolver.keep(memo, key, found, cuts)
        return found

    def _elements(self, value: Value, scope: Scope, index: object) -> Iterator[Ref]:
        if value is None:
            return
        if isinstance(value, str):
            yield from self._elements_of_name(value, scope, index)
            return
        form = value[0]
        if form == "seq":
            items = value[1]
            if isinstance(index, int) and not isinstance(index, bool) and -len(items) <= index < len(items):
                yield from self.resolver.refs(items[index], scope)
            else:
                for item in items:
                    yield from self.resolver.refs(item, scope)
        elif form == "map":
            for key, item in value[1]:
                if index is None or key == index:
                    yield from self.resolver.refs(item, scope)
        elif form == "each":
            yield from self.resolver.refs(value[1], scope)
        elif form == "either":
            for part in value[1]:
                yield from self.elements(part, scope, index)
        elif form == "call":
            yield from self._call_elements(value, scope, index)
        elif form == "item":
            yield from self._nested_elements(value, scope, index, _DEPTH)
            yield from self._batches(value, scope)
        elif form == "attr" and index is None:
            yield from self._batches(value, scope)

    def _elements_of_name(self, value: str, scope: Scope, index: object) -> Iterator[Ref]:
        definitions = self.written.definitions(value, scope)
        for inner, where in definitions:
            if inner != value or where != scope:
                yield from self.elements(inner, where, index)
        if not definitions and "." not in value:
            self.resolver.leans += 1
        if not definitions and self.resolver.param_values is not None and "." not in value:
            for inner, where in self.resolver.param_values(scope, value):
                yield from self.elements(inner, where, index)
        yield from self.resolver.contents.items(value, scope)
        yield from self._annotated_elements(value, scope, index)
        yield from self._batches(value, scope)

    def _batches(self, value: Value, scope: Scope) -> Iterator[Ref]:
        refs = self.resolver.refs(value, scope)
        if type(value) is str and value.endswith(".__dict__"):
            for ref in refs:
                if ref.kind == MODULE_REF:
                    yield from self.resolver.offered(ref.path)
            return
        if refs and self.resolver.has_loader(refs):
            yield Ref(BATCH, "", "")

    def _nested_elements(self, value: Value, scope: Scope, index: object, depth: int) -> Iterator[Ref]:
        """`for i, x in enumerate(xs)`, `zip(a, b)`, `d.items()`: the element's own element `index`."""
        if depth <= 0:
            return
        source = value[1]
        if isinstance(source, tuple) and source[0] in ("map", "seq"):
            for inner in self._held(source, value[2]):  # `{"unet": {"2d": UNet}}[name][size]`
                yield from self.elements(inner, scope, index)
            return
        if isinstance(source, tuple) and source[0] == "call" and isinstance(index, int):
            name = source[1] if isinstance(source[1], str) else ""
            args = source[2]
            if name == "enumerate" and args and index == 1:
                yield from self.elements(args[0], scope)
            elif name == "zip" and index < len(args):
                yield from self.elements(args[index], scope)
            elif name.endswith((".items", ".named_children", ".named_modules")) and index == 1:
                yield from self.elements(name.rpartition(".")[0], scope)
            elif name.rpartition(".")[2] in {"tqdm", "track", "list", "iter"} and args:
                yield from self._nested_elements(("item", args[0], None), scope, index, depth - 1)
            elif name.rpartition(".")[2] in _PREPARE and index < len(args):
                yield from self.elements(args[index], scope)
            else:
                yield from self._elements_of_part(value, scope, index)
            return
        if isinstance(source, tuple) and source[0] == "call":
            yield from self._elements_of_part(value, scope, index)
            return
        for inner, where in self.written.definitions(source, scope) if isinstance(source, str) else ():
            yield from self._nested_elements(("item", inner, value[2]), where, index, depth - 1)

    def _elements_of_part(self, part: Value, scope: Scope, index: object) -> Iterator[Ref]:
        """`_, loaders = make(options)`: elements of a part of what a function gives."""
        _, call, place = part
        for callee in self.resolver.refs(call[1], scope) if type(place) is int else ():
            if callee.kind != FUNCTION:
                continue
            facts = self.resolver.summaries[callee.path].functions[callee.name]
            for value in () if facts.is_generator else facts.returns:
                if isinstance(value, tuple) and value[0] == "seq" and -len(value[1]) <= place < len(value[1]):
                    where = Scope(callee.path, callee.name)
                    given_back = self.resolver.results.handed(value[1][place], facts, where, call, scope)
                    yield from self.elements(*given_back, index)

    @staticmethod
    def _held(whole: Value, index: object) -> list[Value]:
        """What a display holds under an index, or under any."""
        if whole[0] == "map":
            return [item for key, item in whole[1] if index is None or key == index]
        is_place = type(index) is int and -len(whole[1]) <= index < len(whole[1])
        return [whole[1][index]] if is_place else list(whole[1])

    def _call_elements(self, value: Value, scope: Scope, index: object) -> Iterator[Ref]:
        func, args = value[1], given(value)
        name = func if isinstance(func, str) else ""
        last = name.rpartition(".")[2]
        if last in _PREPARE and args:
            if isinstance(index, int) and len(args) > 1:
                if index < len(args):
                    yield from self.resolver.refs(args[index], scope)
                return
            if len(args) == 1:
                yield from self.elements(args[0], scope, index)
            return
        if last in {"values", "children", "modules", "parameters"} and "." in name:
            yield from self.elements(name.rpartition(".")[0], scope)
            return
        for callee in self.resolver.refs(func, scope):
            if callee.kind == EXTERNAL and (
                canonical(callee.name) in _CONTAINERS or canonical(callee.name) in IDENTITY
            ):
                for argument in args:
                    yield from self.elements(argument, scope, index)
                    if canonical(callee.name) == _SEQUENTIAL:
                        yield from self.resolver.refs(argument, scope)
                yield from self._held_by_name(callee, value, scope, index)
            elif callee.kind == EXTERNAL and type(index) is int and canonical(callee.name) in wrappers.HANDED_BACK:
                handed = handed_back(callee.name, value)
                yield from self.resolver.refs(handed[index], scope) if index < len(handed) else ()
            elif callee.kind == FUNCTION:
                yield from self._generated(callee, index, value, scope)
                returned = self.resolver.results.returned(callee, value, scope) if index is None else ()
                if self.resolver.has_loader(returned):
                    yield Ref(BATCH, "", "")
            elif callee.kind in (CLASS, EXTERNAL) and self.resolver.is_loader(instance_of(callee)):
                yield Ref(BATCH, "", "")
            elif callee.kind == EXTERNAL:
                yield from self._held_by_name(callee, value, scope, index)
            elif callee.kind == CLASS:
                yield from self._iterated(Ref(INSTANCE, callee.path, callee.name))

    def _held_by_name(self, callee: Ref, call: Value, scope: Scope, index: object) -> Iterator[Ref]:
        for item in namespaces.named(callee.name, call, index):
            yield from self.resolver.refs(item, scope)

    def _iterated(self, instance: Ref) -> Iterator[Ref]:
        found = self.hierarchy.method(instance, "__iter__")
        if not found:
            return
        yield from self._generated(found, None)
        for given_back in self.resolver.results.returned(found):
            # `return self`: what a turn takes is what `__next__` gives.
            taking = self.hierarchy.method(given_back, "__next__") if given_back.kind == INSTANCE else None
            if taking:
                yield from self.resolver.results.returned(taking)

    def _generated(
        self, function: Ref, index: object, call: Value = None, caller: Scope | None = None
    ) -> Iterator[Ref]:
        facts = self.resolver.summaries[function.path].functions[function.name]
        scope = Scope(function.path, function.name)
        for value, context in facts.yields:
            if self._in_batch_loop(facts, context, scope):
                yield Ref(BATCH, "", "")
            if isinstance(value, tuple) and value[0] == "each" and value[1] is None:
                yield from self.elements(value[2], scope)
            else:
                yield from self.resolver.refs(value, scope)
        seen = False
        for value in facts.returns if not facts.is_generator else ():
            items = value[1] if isinstance(value, tuple) and value[0] == "seq" else ()
            if type(index) is int and -len(items) <= index < len(items):
                item, where = self.resolver.results.handed(items[index], facts, scope, call, caller)
                held = self.resolver.refs(item, where)
                seen = seen or bool(held)
                yield from held
            else:
                for given_back, where in self.resolver.results.placed(value, facts, scope, call, caller):
                    yield from self.elements(given_back, where, index)
        # `tuple[Base, Base]` says less than what is seen to be handed back.
        promised = "" if seen else facts.returns_annotation
        for name in element_names(promised, index) if promised else ():
            for ref in self.resolver.refs(name, Scope(function.path, facts.owner or MODULE)):
                yield instance_of(ref)

    def _in_batch_loop(self, facts: FunctionFacts, context: int, scope: Scope) -> bool:
        """Whether a generator yields once for each batch, whatever it makes of it."""
        loop = facts.innermost_loop(context)
        found = self.elements(facts.loops[loop].iterable, scope) if loop is not None else ()
        return any(ref.kind == BATCH for ref in found)

    def _annotated_elements(self, dotted: str, scope: Scope, index: object) -> Iterator[Ref]:
        for annotation, where in self.written.annotations(dotted, scope):
            for name in element_names(annotation, index):
                for ref in self.resolver.refs(name, where):
                    yield instance_of(ref)
