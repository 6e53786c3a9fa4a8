"""Which container a name is of: a global of one module, an attribute of one class, or a local name of one function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from perflint.analysis.names.hierarchy import Hierarchy
from perflint.analysis.names.module_names import ModuleTable
from perflint.analysis.names.nesting import Nesting
from perflint.analysis.names.refs import CLASS, INSTANCE, MODULE_REF, Ref, Refs, Scope
from perflint.ir.summary import MODULE, Summary, Value, record

#: Modules that a name may be imported through.
_DEEPEST = 6


class Container(NamedTuple):
    """A name in a file, and the function or class that it belongs to (`MODULE` for a global one)."""

    path: str
    owner: str
    name: str
    is_local: bool = False


class Homes:
    """Finds containers for one program. `refs` says what the object of an attribute is."""

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

    def container(self, dotted: str, scope: Scope) -> Container | None:
        """The container that goes by a name in `scope`, None where that is not plain to see."""
        base, _, name = dotted.rpartition(".")
        if not base:
            return self._of_name(name, scope)
        for ref in self._refs(base, scope):
            if ref.kind in (INSTANCE, CLASS):
                return self._of_attribute(record(Ref, (CLASS, ref.path, ref.name)), name)
            if ref.kind == MODULE_REF:
                return self._of_global(name, ref.path)
        return None

    def _of_name(self, name: str, scope: Scope) -> Container | None:
        for where, facts in self._nesting.scopes(scope):
            if where.function == MODULE:
                break
            if name in facts.binds or name in self._nesting.positions(facts):
                return Container(where.path, where.function, name, is_local=True)
        return self._of_global(name, scope.path)

    def _of_attribute(self, cls: Ref, name: str) -> Container:
        """An attribute belongs to the first class that gives it a value."""
        name = self._hierarchy.stored_as(cls, name)
        for base in self._hierarchy.mro(cls):
            facts = self._hierarchy.facts(base)
            if facts is not None and name in facts.attributes:
                return Container(base.path, base.name, name)
        return Container(cls.path, cls.name, name)

    def _of_global(self, name: str, path: str, depth: int = _DEEPEST) -> Container | None:
        summary = self._summaries[path]
        values = summary.functions[MODULE].binds.get(name)
        if values is not None:
            if len(values) == 1 and type(values[0]) is str and "." not in values[0] and values[0] != name and depth:
                return self._of_global(values[0], path, depth - 1) or Container(path, MODULE, name)
            return Container(path, MODULE, name)
        if name in summary.classes:
            return Container(path, MODULE, name)
        if depth <= 0:
            return None
        targets = [summary.imports[name]] if name in summary.imports else [f"{star}.{name}" for star in summary.stars]
        for target in targets:
            module, _, last = self._modules.absolute(target, path).rpartition(".")
            found = self._modules.find(module, path) if module else None
            container = self._of_global(last, found, depth - 1) if found is not None and found != path else None
            if container is not None:
                return container
        return None


def outermost(scope: Scope) -> Scope:
    """The function that a function stands in, at whatever depth: `Registry.register` for a wrapper defined there."""
    return record(Scope, (scope.path, scope.function.partition(".<locals>")[0]))
