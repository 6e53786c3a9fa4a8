"""Classes and their bases, across files and up into libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

from perflint.analysis.names.declared import handed_back
from perflint.analysis.names.refs import CLASS, EXTERNAL, EXTERNAL_INSTANCE, FUNCTION, Ref, Refs, Scope
from perflint.ir.summary import MODULE, ClassFacts, Summary, Value, record
from perflint.torch_model import modules

#: Properties that return properties.
_LONGEST = 4


class Hierarchy:
    """The class hierarchy of a linked project, worked out as it is asked for. `refs` says what a base names."""

    def __init__(self, summaries: Mapping[str, Summary], refs: Callable[[Value, Scope], Refs]) -> None:
        self._summaries = summaries
        self._refs = refs
        self._mro: dict[Ref, tuple[Ref, ...]] = {}
        self._below: dict[Ref, list[Ref]] | None = None

    def method(self, instance: Ref, name: str) -> Ref | None:
        """The project's own definition of a method, through base classes."""
        cls = instance if instance.kind == CLASS else record(Ref, (CLASS, instance.path, instance.name))
        for kind, path, base in self._mro[cls] if cls in self._mro else self.mro(cls):
            if kind == CLASS:
                qualname = f"{base}.{name}"
                if qualname in self._summaries[path].functions:
                    return record(Ref, (FUNCTION, path, qualname))
        return None

    def stored_as(self, cls: Ref, name: str) -> str:
        """What an attribute is called where it is set: another name, where a property only returns it."""
        for _ in range(_LONGEST):
            by_class = self._handed_back.get(name)
            if by_class is None:
                break
            owner = next((base for base in self.mro(cls) if self._defines(base, name)), None)
            if owner is None:
                owner = next((child for child in by_class if cls in self.mro(child)), None)
            if owner is None or owner not in by_class:
                break
            name = by_class[owner]
        return name

    @cached_property
    def _handed_back(self) -> Mapping[str, Mapping[Ref, str]]:
        """By name and class, what the properties return that do nothing else."""
        found: dict[str, dict[Ref, str]] = {}
        for path, summary in self._summaries.items():
            for facts in summary.functions.values():
                behind = handed_back(facts) if facts.decorators and facts.in_class else ""
                if behind:
                    found.setdefault(facts.name, {})[Ref(CLASS, path, facts.in_class)] = behind
        return found

    def _defines(self, cls: Ref, name: str) -> bool:
        facts = self.facts(cls)
        return facts is not None and (name in facts.methods or name in facts.attributes)

    def facts(self, cls: Ref) -> ClassFacts | None:
        return self._summaries[cls.path].classes.get(cls.name) if cls.kind == CLASS else None

    def mro(self, cls: Ref) -> tuple[Ref, ...]:
        """The class and its bases, depth first, library bases as `EXTERNAL`."""
        if cls in self._mro:
            return self._mro[cls]
        self._mro[cls] = (cls,)  # cuts inheritance cycles
        # On a list, not by recursion: programs that were generated have chains of a thousand classes.
        waiting, bases = [cls], {cls: self._bases(cls)}
        while waiting:
            here = waiting[-1]
            base = next((one for one in bases[here] if one.kind == CLASS and one not in self._mro), None)
            if base is not None:
                self._mro[base] = (base,)
                waiting.append(base)
                bases[base] = self._bases(base)
                continue
            waiting.pop()
            found = [here]
            for one in bases[here]:
                found += self._mro[one] if one.kind == CLASS else (one,)
            self._mro[here] = tuple(dict.fromkeys(found))
        return self._mro[cls]

    def _bases(self, cls: Ref) -> list[Ref]:
        """The bases that a class is written with, those of libraries as `EXTERNAL`."""
        facts = self.facts(cls)
        found: list[Ref] = []
        for written in facts.bases if facts is not None else ():
            # `Dataset[int]`, `Generic[T]`
            base = written[1] if isinstance(written, tuple) and written[0] == "item" else written
            for ref in self._refs(base, Scope(cls.path, MODULE)):
                if ref.kind == CLASS:
                    found.append(ref)
                elif ref.kind in (EXTERNAL, EXTERNAL_INSTANCE):
                    found.append(Ref(EXTERNAL, "", ref.name))
        return found

    def below(self, cls: Ref) -> list[Ref]:
        """The project's classes that derive from a class, in any number of steps."""
        if self._below is None:
            self._below = {}
            for path, summary in self._summaries.items():
                for name in summary.classes:
                    child = Ref(CLASS, path, name)
                    for base in self.mro(child)[1:]:
                        if base.kind == CLASS:
                            self._below.setdefault(base, []).append(child)
        return self._below.get(cls, [])

    def derives(self, ref: Ref, *dotted: str) -> bool:
        """Whether a class or instance derives from a library class, named in full or by its last name."""
        for base in self.mro(Ref(CLASS, ref.path, ref.name)) if ref.path else (ref,):
            if base.kind != CLASS or not base.path:
                if base.name in dotted or base.name.rpartition(".")[2] in dotted:
                    return True
        return False

    def is_module(self, cls: Ref) -> bool:
        """Whether a class of the project derives from a library's base of modules."""
        return any(base.kind == EXTERNAL and modules.is_module_class(base.name) for base in self.mro(cls))
