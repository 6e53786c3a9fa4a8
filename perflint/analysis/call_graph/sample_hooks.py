"""What a library's data set is made with that it calls for each sample: `PhotoFolder(root, transform=Jitter())`; and
what a loader of the project sets to make its batches.
"""

from __future__ import annotations

from collections.abc import Iterator

from perflint.analysis.call_graph.compositions import composed
from perflint.analysis.names.refs import CLASS, EXTERNAL, INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver, is_loader
from perflint.ir.summary import CallFacts, Value
from perflint.torch_model import loaders
from perflint.torch_model.names import last


def sample_hooks(resolver: Resolver) -> Iterator[Scope]:
    """The functions of the project that data sets of libraries call for each sample."""
    finder = _Finder(resolver)
    for key in loaders.SAMPLE_HOOKS:
        for item, value in resolver.nesting.keywords.get(key, ()):
            if any(finder.calls_hooks(ref) for ref in resolver.refs(item.call.func, item.scope)):
                yield from composed(value, item.scope, resolver)
    for item in resolver.nesting.calls_of(("__init__",)):
        base = finder.base_made(item.call, item.scope)
        for value in _given(item.call, base) if base else ():
            yield from composed(value, item.scope, resolver)


def own_collate(cls: Ref, resolver: Resolver) -> list[Scope]:
    """What a class of loaders makes its batches with, where its `__init__` sets that: `self.collate_fn = padded`."""
    init = resolver.method(Ref(INSTANCE, cls.path, cls.name), "__init__")
    if init is None:
        return []
    return composed("self.collate_fn", Scope(init.path, init.name), resolver)


def own_loaders(resolver: Resolver) -> Iterator[Ref]:
    """The project's classes that are loaders."""
    for path, summary in resolver.summaries.items():
        for name in summary.classes:
            if is_loader(resolver, Ref(INSTANCE, path, name)):
                yield Ref(CLASS, path, name)


class _Finder:
    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._loaded: frozenset[Ref] | None = None

    def calls_hooks(self, ref: Ref) -> bool:
        """Whether a class is a library's data set, or one of the project that leaves making it to the library's."""
        if ref.kind == EXTERNAL:
            return loaders.calls_hooks(ref.name)
        made = Ref(INSTANCE, ref.path, ref.name)
        return ref.kind == CLASS and self._resolver.method(made, "__init__") is None and bool(self._base(ref))

    def base_made(self, call: CallFacts, scope: Scope) -> str:
        """The library's data set whose `__init__` a class calls by `super()`, empty where it is none."""
        func = call.func
        if not (isinstance(func, tuple) and func[0] == "attr" and isinstance(func[1], tuple)):
            return ""
        cls = self._resolver.nesting.enclosing_class(scope) if func[1][:2] == ("call", "super") else None
        return self._base(cls) if cls is not None else ""

    def _base(self, cls: Ref) -> str:
        bases = [ref.name for ref in self._resolver.mro(cls) if ref.kind == EXTERNAL]
        found = next((name for name in bases if loaders.calls_hooks(name) or loaders.may_hold_one(name)), "")
        return "" if loaders.may_hold_one(found) and not self._is_loaded(cls) else found

    def _is_loaded(self, cls: Ref) -> bool:
        """Whether a loader goes through a data set of a class: it may be one graph that is taken out once."""
        if self._loaded is None:
            self._loaded = frozenset(self._handed_to_loaders())
        return any(Ref(CLASS, each.path, each.name) in self._loaded for each in (cls, *self._resolver.below(cls)))

    def _handed_to_loaders(self) -> Iterator[Ref]:
        resolver = self._resolver
        names = {last(name) for name in loaders.LOADERS}
        names.update(cls.name.rpartition(".")[2] for cls in own_loaders(resolver))
        for item in resolver.nesting.calls_of(sorted(names)):
            dataset = item.call.args[0] if item.call.args else dict(item.call.keywords).get("dataset")
            for ref in resolver.refs(dataset, item.scope):
                if ref.kind == INSTANCE:
                    yield Ref(CLASS, ref.path, ref.name)


def _given(call: CallFacts, base: str) -> list[Value]:
    places = loaders.hook_places(base)
    given = [value for key, value in call.keywords if key in loaders.SAMPLE_HOOKS]
    return given + [call.args[place] for place in places if place < len(call.args)]
