"""In which classes of a program an attribute of an object is set, and under which name: along the order of resolution
of its class, else in what derives from it; through properties that only return another attribute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from perflint.analysis.names.declared import handed_back
from perflint.analysis.names.refs import CLASS, Ref
from perflint.ir.summary import FunctionFacts, Summary

if TYPE_CHECKING:
    from perflint.analysis.names.hierarchy import Hierarchy

_REGISTERING = ("self.register_buffer", "self.register_parameter")
#: Classes below a base.
_MOST_BELOW = 24

#: A class, and what the attribute is called there.
Holder = tuple[Ref, str]


class Holders:
    """Answers for one program, by class and attribute, of its summaries alone."""

    def __init__(self, summaries: Mapping[str, Summary], hierarchy: Hierarchy) -> None:
        self._summaries = summaries
        self._hierarchy = hierarchy
        self._known: dict[tuple[Ref, str], tuple[Holder, ...]] = {}
        self._readers: dict[tuple[Ref, str], tuple[Holder, ...]] = {}
        self._buffers: dict[Ref, frozenset[str]] = {}

    def setters_of(self, cls: Ref, name: str) -> tuple[Holder, ...]:
        """The classes that set an attribute of the objects of a class, nearest first."""
        known = self._known.get((cls, name))
        if known is None:
            known = self._known[cls, name] = self._found(cls, name)
        return known

    def readers_of(self, cls: Ref, name: str) -> tuple[Holder, ...]:
        """The classes whose methods read what a class sets, once for each name that they may read it by."""
        known = self._readers.get((cls, name))
        if known is None:
            kin = [*self._above(cls), *self._below(cls)]
            handed = [facts.name for one in kin for _, facts in self._methods(one) if handed_back(facts) == name]
            names = dict.fromkeys((name, *handed))
            known = self._readers[cls, name] = tuple((one, given) for one in kin for given in names)
        return known

    def setters_below(self, cls: Ref, name: str) -> tuple[Ref, ...]:
        """The classes that derive from a class and set an attribute, whether or not the class does."""
        return tuple(one for one in self._hierarchy.below(cls) if self._sets(one, name))

    def _found(self, cls: Ref, name: str) -> tuple[Holder, ...]:
        above, below, name = self._above(cls), self._below(cls), self._hierarchy.stored_as(cls, name)
        found = [one for one in above if self._sets(one, name)] or [one for one in below if self._sets(one, name)]
        return tuple((one, name) for one in found)

    def _above(self, cls: Ref) -> list[Ref]:
        return [one for one in self._hierarchy.mro(cls) if one.kind == CLASS and one.path in self._summaries]

    def _below(self, cls: Ref) -> list[Ref]:
        return self._hierarchy.below(cls)[:_MOST_BELOW]

    def _methods(self, cls: Ref) -> Iterator[tuple[str, FunctionFacts]]:
        summary = self._summaries[cls.path]
        facts = summary.classes.get(cls.name)
        for name in facts.methods if facts is not None else ():
            method = summary.functions.get(f"{cls.name}.{name}")
            if method is not None:
                yield name, method

    def _sets(self, cls: Ref, name: str) -> bool:
        facts = self._summaries[cls.path].classes.get(cls.name)
        if facts is None:
            return False
        if name in facts.attributes or name in facts.computed or name in facts.unclear:
            return True
        buffers = self._buffers.get(cls)
        if buffers is None:
            buffers = self._buffers[cls] = frozenset(self._registered(cls))
        return name in buffers

    def _registered(self, cls: Ref) -> Iterator[str]:
        """Names given to `self.register_buffer` and `self.register_parameter`."""
        for _, method in self._methods(cls):
            for call in method.calls:
                given = call.args[0] if call.func in _REGISTERING and call.args else None
                if isinstance(given, tuple) and given[0] == "const" and isinstance(given[2], str):
                    yield given[2]
