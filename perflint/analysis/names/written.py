"""What a project writes about a name or an attribute: the values it is given and the annotations it bears."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from perflint.analysis.names.hierarchy import Hierarchy
from perflint.analysis.names.module_names import ModuleTable
from perflint.analysis.names.nesting import Nesting
from perflint.analysis.names.refs import CLASS, INSTANCE, MODULE_REF, Ref, Refs, Scope
from perflint.ir.summary import MODULE, Summary, Value, record


class Written:
    """Values and annotations as they are written. `refs` says what the object of an attribute is."""

    def __init__(
        self,
        summaries: Mapping[str, Summary],
        modules: ModuleTable,
        nesting: Nesting,
        hierarchy: Hierarchy,
        refs: Callable[[Value, Scope], Refs],
    ) -> None:
        self._summaries = summaries
        self._modules = modules
        self._nesting = nesting
        self._hierarchy = hierarchy
        self._refs = refs

    def definitions(self, dotted: str, scope: Scope) -> list[tuple[Value, Scope]]:
        """The values assigned to a name or to `object.attribute`, each with the scope it is written in."""
        first, _, rest = dotted.partition(".")
        if not rest:
            return self._definitions_of_name(first, scope)
        facts = self._nesting.function(scope)
        if dotted in facts.binds:
            return [(value, scope) for value in facts.binds[dotted]]
        base, _, attribute = dotted.rpartition(".")
        found: list[tuple[Value, Scope]] = []
        for ref in self._refs(base, scope):
            if ref.kind in (INSTANCE, CLASS):
                owner = record(Ref, (CLASS, ref.path, ref.name))
                name = self._hierarchy.stored_as(owner, attribute)
                for cls in self._hierarchy.mro(owner):
                    facts_of = self._hierarchy.facts(cls)
                    if facts_of and name in facts_of.attributes:
                        found += [
                            (value, record(Scope, (cls.path, where))) for value, where in facts_of.attributes[name]
                        ]
                        break
            elif ref.kind == MODULE_REF:
                found += self._definitions_of_name(attribute, Scope(ref.path, MODULE))
        return found

    def _definitions_of_name(self, name: str, scope: Scope) -> list[tuple[Value, Scope]]:
        #: Modules may import a name from each other.
        seen: set[tuple[str, Scope]] = set()
        while (name, scope) not in seen:
            seen.add((name, scope))
            for where, facts in self._nesting.scopes(scope):
                if name in facts.binds:
                    return [(value, where) for value in facts.binds[name]]
                if name in self._nesting.positions(facts):
                    return []
            target = self._summaries[scope.path].imports.get(name)
            module, _, name = self._modules.absolute(target, scope.path).rpartition(".") if target else ("", "", "")
            path = self._modules.find(module, scope.path) if module else None
            if not path or path == scope.path:
                return []
            scope = Scope(path, MODULE)
        return []

    def annotations(self, dotted: str, scope: Scope) -> Iterator[tuple[str, Scope]]:
        """The annotation of a name or of `object.attribute`, with the scope to look its names up in."""
        base, _, attribute = dotted.rpartition(".")
        if not base:
            for where, facts in self._nesting.scopes(scope):
                if dotted in facts.annotations:
                    yield facts.annotations[dotted], Scope(where.path, MODULE)
                    return
                index = self._nesting.positions(facts).get(dotted)
                if index is not None:
                    if facts.params[index].annotation:
                        yield facts.params[index].annotation, Scope(where.path, MODULE)
                    return
            return
        for ref in self._refs(base, scope):
            for cls in self._hierarchy.mro(Ref(CLASS, ref.path, ref.name)) if ref.kind in (INSTANCE, CLASS) else ():
                facts_of = self._hierarchy.facts(cls)
                if facts_of and attribute in facts_of.annotations:
                    yield facts_of.annotations[attribute], Scope(cls.path, MODULE)
                    return
