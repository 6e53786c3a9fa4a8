"""What an import binds, and what a module gives under a name: its own, or one that it imports itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from perflint.analysis.names.module_names import ModuleTable
from perflint.analysis.names.refs import CLASS, EXTERNAL, FUNCTION, MODULE_REF, Ref, Refs, Scope, defined, few
from perflint.ir.summary import MODULE, Summary, Value, record

#: Modules that a name may be handed through.
_DEPTH = 6


class Resolving(Protocol):
    """What imports ask of the resolver that they answer for."""

    summaries: Mapping[str, Summary]
    cuts: int
    leans: int

    def any_of(self, values: tuple[Value, ...], scope: Scope) -> Refs: ...


class Imports:
    """Answers for one resolver."""

    def __init__(self, resolver: Resolving, modules: ModuleTable) -> None:
        self._resolver = resolver
        self._summaries = resolver.summaries
        self._modules = modules
        #: By file, the names that were asked about, and whether they are imported from libraries.
        self._foreign: dict[str, dict[str, bool]] = {path: {} for path in resolver.summaries}
        #: What modules give under names that they do not define themselves.
        self._exported: dict[tuple[str, str], Refs] = {}
        #: Those that may be others once more is known of calls.
        self._leaning: dict[tuple[str, str], None] = {}
        #: By file, the classes that may be looked up in it by text.
        self._offers: dict[str, Refs] = {}
        #: By file, the modules below the packages that its texts name.
        self._below: dict[str, Refs] = {}

    def forget(self) -> None:
        """Drop what was concluded before it was known what callers pass."""
        for key in self._leaning:
            del self._exported[key]
        self._leaning.clear()
        self._offers.clear()

    def is_foreign(self, name: str, path: str) -> bool:
        """Whether a file imports a name from a library."""
        known = self._foreign[path]
        found = known.get(name)
        if found is None:
            target = self._summaries[path].imports.get(name)
            found = known[name] = target is not None and (
                self._modules.is_library(target) or all(ref.kind == EXTERNAL for ref in self.imported(target, path))
            )
        return found

    def bound(self, name: str, path: str) -> Refs:
        """What a file's imports bind a name to, in whichever branch."""
        summary = self._summaries[path]
        found = self.imported(summary.imports[name], path)
        if name not in summary.also:
            return found
        return few([*found, *(ref for target in summary.also[name] for ref in self.imported(target, path))])

    def imported(self, target: str, importer: str) -> Refs:
        """What `import target` or `from module import name` (given as `module.name`) binds in `importer`."""
        if self._modules.is_library(target):
            return (record(Ref, (EXTERNAL, "", target)),)
        dotted = self._modules.absolute(target, importer)
        found = self._imported(dotted, importer, _DEPTH)
        return (record(Ref, (EXTERNAL, "", dotted)),) if found is None else found

    def _imported(self, dotted: str, importer: str, depth: int) -> Refs | None:
        """What an absolute name is, None where it is of no file of the project.

        What a package binds goes before its submodule of the same name, as `from .area import area` in its
        `__init__.py` has it; and of several modules that may be meant, one that gives the name.
        """
        module, _, name = dotted.rpartition(".")
        owners = self._modules.candidates(module, importer) if module else ()
        if importer not in owners[:1]:  # `from . import tools` in a package's own file is of its modules
            for owner in owners:
                if owner != importer and self._binds(owner, name):
                    return self.exported(owner, name, depth)
        direct = self._modules.find(dotted, importer)
        if direct is not None:
            return (record(Ref, (MODULE_REF, direct, "")),)
        if not owners:
            return None
        return () if owners[0] == importer else self.exported(owners[0], name, depth)

    def _binds(self, path: str, name: str, depth: int = _DEPTH) -> bool:
        """Whether a module itself gives a name, whatever it stands for."""
        summary = self._summaries[path]
        if name in summary.imports or name in summary.functions[MODULE].binds or defined(summary, path, name):
            return True
        stars = (self._modules.find(self._modules.absolute(star, path), path) for star in summary.stars)
        return depth > 0 and any(star and star != path and self._binds(star, name, depth - 1) for star in stars)

    def exported(self, path: str, name: str, depth: int = _DEPTH) -> Refs:
        """A module's attribute, through re-exports and star imports."""
        found = defined(self._summaries[path], path, name)
        if found or depth < _DEPTH:
            return found or self._exported_further(path, name, depth)
        known = self._exported.get((path, name))
        if known is None:
            cuts, leans = self._resolver.cuts, self._resolver.leans
            known = self._exported_further(path, name, depth)
            if cuts == self._resolver.cuts:
                self._exported[path, name] = known
                if leans != self._resolver.leans:
                    self._leaning[path, name] = None
        elif self._leaning and (path, name) in self._leaning:
            self._resolver.leans += 1
        return known

    def classes(self, path: str) -> Refs:
        """The classes that a module offers to who looks one up by text, `getattr(models, options["name"])`: its own,
        those of its star imports, and what a package imports from its parts. Nothing where it offers functions as well
        as much: what is looked up is one of them, then.
        """
        known = self._offers.get(path)
        self._resolver.leans += 1
        if known is None:
            cuts = self._resolver.cuts
            found, functions = self._offered(path, _DEPTH)
            known = tuple(found) if len(found) >= functions else ()
            if cuts == self._resolver.cuts:
                self._offers[path] = known
        return known

    def functions(self, path: str) -> Refs:
        """The public functions that a module offers: its own, and what a package imports from its parts."""
        summary = self._summaries[path]
        found = {record(Ref, (FUNCTION, path, name)): None for name in summary.functions if _is_public(name)}
        if path.endswith("__init__.py"):
            given = [ref for name in summary.imports if _is_public(name) for ref in self.exported(path, name)]
            found.update((ref, None) for ref in given if ref.kind == FUNCTION)
        return tuple(found)

    def own_classes(self, path: str) -> Refs:
        """The public classes that a module offers, whatever functions it offers beside them."""
        return tuple(self._offered(path, _DEPTH)[0])

    def below_texts(self, path: str) -> Refs:
        """The modules that a file may import by a name that it computes: those right below the packages that its texts
        begin with, as in `import_module("models." + name)`.
        """
        known = self._below.get(path)
        if known is None:
            folders = tuple(f".{folder}" for folder in folders_in(self._summaries[path].texts))
            found = [other for other in self._summaries if folders and self._parent(other).endswith(folders)]
            known = self._below[path] = tuple([record(Ref, (MODULE_REF, other, "")) for other in found])
        return known

    def _parent(self, path: str) -> str:
        return f".{self._modules.name_of(path).rpartition('.')[0]}"

    def _offered(self, path: str, depth: int) -> tuple[dict[Ref, None], int]:
        """The public classes of a module, and how many public functions there are beside them."""
        summary = self._summaries[path]
        found = {record(Ref, (CLASS, path, name)): None for name in summary.classes if _is_public(name)}
        functions = sum(_is_public(name) and name != MODULE for name in summary.functions)
        if path.endswith("__init__.py"):
            given = [ref for name in summary.imports if _is_public(name) for ref in self.exported(path, name)]
            found.update((ref, None) for ref in given if ref.kind == CLASS)
            functions += sum(ref.kind == FUNCTION for ref in given)
        for star in summary.stars if depth > 0 else ():
            inner = self._modules.find(self._modules.absolute(star, path), path)
            if inner and inner != path:
                more, others = self._offered(inner, depth - 1)
                found.update(more)
                functions += others
        return found, functions

    def _exported_further(self, path: str, name: str, depth: int) -> Refs:
        """What a module does not define, but binds or imports."""
        summary = self._summaries[path]
        if depth <= 0:
            return ()
        binds = summary.functions[MODULE].binds.get(name)
        if binds:
            return self._resolver.any_of(binds, record(Scope, (path, MODULE)))
        if name in summary.imports:
            target = self._modules.absolute(summary.imports[name], path)
            if self._modules.find(target, path) == path:
                return ()
            found = self._imported(target, path, depth - 1)
            return (Ref(EXTERNAL, "", target),) if found is None else found
        for star in summary.stars:
            inner = self._modules.find(self._modules.absolute(star, path), path)
            if inner and inner != path:
                found = self.exported(inner, name, depth - 1)
                if found:
                    return found
        submodule = self._modules.find(f"{self._modules.name_of(path)}.{name}", path)
        return (Ref(MODULE_REF, submodule, ""),) if submodule and submodule != path else ()


def folders_in(texts: str) -> list[str]:
    """The packages below which a file may look for modules: `models.` of `import_module(f"models.{name}")`."""
    words = (word.rstrip("{").replace("/", ".") for word in texts.split())
    return [folder for word in words if word.endswith(".") and (folder := word.strip("."))]


def _is_public(name: str) -> bool:
    return "." not in name and not name.startswith(("_", "<"))
