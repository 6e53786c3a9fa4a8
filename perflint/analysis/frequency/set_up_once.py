"""Attributes that count nothing, whatever they are called: constructors give them what they are told, `self.k = k`."""

from __future__ import annotations

from perflint.analysis.names.module_writes import ModuleWrites
from perflint.analysis.names.refs import Ref
from perflint.analysis.names.resolver import Resolver


class SetUpOnce:
    """Answers for one program."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._writes = ModuleWrites(resolver)
        self._known: dict[tuple[str, Ref], bool] = {}

    def is_set_up_once(self, name: str, cls: Ref) -> bool:
        """Whether `self.name` of a class is what the constructors of its classes give it, or their bodies, and nothing
        else anywhere: no turn moves it on.
        """
        known = self._known.get((name, cls))
        if known is None:
            known = self._known[name, cls] = self._is_set_up_once(name, cls)
        return known

    def _is_set_up_once(self, name: str, cls: Ref) -> bool:
        hierarchy = self._resolver.hierarchy
        is_given = False
        for owner in dict.fromkeys([*hierarchy.mro(cls), *hierarchy.below(cls)]):
            facts = hierarchy.facts(owner)
            if facts is None:
                continue  # a library's
            if name in facts.unclear or f"{owner.name}.{name}" in self._resolver.summaries[owner.path].functions:
                return False
            for _, where in (*facts.attributes.get(name, ()), *facts.computed.get(name, ())):
                if where not in (owner.name, f"{owner.name}.__init__"):
                    return False
                is_given = True
        return is_given and not self._writes.from_outside(name)
