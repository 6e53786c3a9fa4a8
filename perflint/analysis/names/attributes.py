"""What an attribute of a thing may be: of a module, of a class of the project and its objects, of a library's thing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perflint.analysis.names.refs import (
    CLASS,
    EXTERNAL,
    EXTERNAL_INSTANCE,
    FUNCTION,
    INSTANCE,
    MODULE_REF,
    Ref,
    Refs,
    Scope,
    defined,
    few,
)
from perflint.ir.summary import MODULE, Value, record
from perflint.torch_model import wrappers
from perflint.torch_model.frameworks import AUTOGRAD_FUNCTIONS

if TYPE_CHECKING:
    from perflint.analysis.names.resolver import Resolver

_WRAPPED_ATTRIBUTES = wrappers.WRAPPED_ATTRIBUTES


class Attributes:
    """Answers for one resolver, remembered as its own are."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._memo: dict[tuple[Ref, str], Refs] = {}
        #: What is known for good, whatever turns out about calls.
        self._kept: dict[tuple[Ref, str], Refs] = {}

    def forget(self) -> None:
        """Drop what was concluded before more was known of calls."""
        self._memo.clear()

    def of(self, ref: Ref, name: str) -> Refs:
        """What `name` of a thing may be; of a library's thing, a name below its own."""
        if ref.kind == MODULE_REF:
            return (ref,) if name == "__dict__" else self._resolver.imports.exported(ref.path, name)
        if ref.kind in (EXTERNAL, EXTERNAL_INSTANCE):
            if ref.kind == EXTERNAL_INSTANCE and name in _WRAPPED_ATTRIBUTES:
                return (ref,)
            return (record(Ref, (ref.kind, "", f"{ref.name}.{name}")),)
        if name == "remote" and ref.kind in (CLASS, FUNCTION):
            return (ref,)  # `Worker.remote()`, `worker.act.remote(seen)`: Ray calls what is meant somewhere else
        if ref.kind not in (INSTANCE, CLASS):
            return ()
        key = (ref, name)
        known = self._kept.get(key)
        if known is not None:
            return known
        known = self._memo.get(key)
        if known is not None:
            self._resolver.leans += 1
            return known
        cuts, leans = self._resolver.cuts, self._resolver.leans
        known = self._attribute(ref, name)
        if leans == self._resolver.leans and not self._resolver.has_provisional:
            self._kept[key] = known = self._resolver.once(known)
        else:
            self._resolver.keep(self._memo, key, known, cuts)
        return known

    def _attribute(self, ref: Ref, name: str) -> Refs:
        """An attribute of a project class, or of what derives from it: a base may count on its children."""
        cls = ref if ref.kind == CLASS else record(Ref, (CLASS, ref.path, ref.name))
        for base in self._resolver.hierarchy.mro(cls):
            found = self.written_in(base, name)
            if found:
                return self._as_property(self._of_own(cls, base, name, found))
        if name in _WRAPPED_ATTRIBUTES:
            return (ref,)
        if name == "apply" and self._resolver.hierarchy.derives(cls, *AUTOGRAD_FUNCTIONS):
            return self._attribute(cls, "forward")
        inherited = [self.written_in(child, name) for child in self._resolver.hierarchy.below(cls)]
        return few([ref for refs in inherited if refs for ref in self._as_property(refs)])

    def _of_own(self, cls: Ref, base: Ref, name: str, found: Refs) -> Refs:
        """Of what a base's constructor keeps of its arguments, what the objects of a class are made with."""
        made, init = self._resolver.made_refs, f"{base.name}.__init__"
        if base == cls or len(found) < 2 or made is None:
            return found
        values = self._resolver.summaries[base.path].classes[base.name].attributes.get(name, ())
        scope = Scope(base.path, init)
        if not values or any(where != init or not self._is_given(value, scope) for value, where in values):
            return found
        own = few([ref for value, _ in values for ref in made(cls, scope, value)])
        return own if own and set(own) <= set(found) else found

    def _is_given(self, value: Value, scope: Scope) -> bool:
        """Whether a value is what a function is given, as it came."""
        facts = self._resolver.summaries[scope.path].functions[scope.function]
        return isinstance(value, str) and value not in facts.binds and value in self._resolver.nesting.positions(facts)

    def _as_property(self, refs: Refs) -> Refs:
        first = refs[0]
        if first.kind == FUNCTION:
            facts = self._resolver.summaries[first.path].functions[first.name]
            if any(item in ("property", "cached_property", "functools.cached_property") for item in facts.decorators):
                return self._resolver.results.returned(first)
        return refs

    def written_in(self, cls: Ref, name: str) -> Refs:
        """What a class itself says of an attribute, without its bases."""
        if cls.kind == EXTERNAL:
            return ()
        summary = self._resolver.summaries[cls.path]
        qualname = f"{cls.name}.{name}"
        found = defined(summary, cls.path, qualname)
        if found:
            return found
        facts = summary.classes[cls.name]
        if name in facts.attributes:
            found = self._any_of_written(facts.attributes[name], cls.path)
            if found:
                return found
        if name in facts.annotations:
            return self._resolver.annotated(facts.annotations[name], Scope(cls.path, MODULE))
        return ()

    def _any_of_written(self, values: tuple[tuple[Value, str], ...], path: str) -> Refs:
        if len(values) == 1:
            value, where = values[0]
            return self._resolver.refs(value, record(Scope, (path, where)))
        return few(ref for value, where in values for ref in self._resolver.refs(value, record(Scope, (path, where))))
