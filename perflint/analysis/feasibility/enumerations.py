"""Members of enumerations that the project defines: each equals itself alone."""

from __future__ import annotations

from perflint.analysis.feasibility.lattice import TRUE, Literal, Possible
from perflint.analysis.names.refs import CLASS, EXTERNAL, Ref
from perflint.analysis.names.resolver import Resolver

#: Not those whose members are numbers or texts as well.
_ENUMERATION = "enum.Enum"


def member_of(cls: Ref, name: str, resolver: Resolver) -> Possible | None:
    """The member of this name; None for another class, a method, and what only an annotation declares."""
    facts = resolver.hierarchy.facts(cls) if cls.kind == CLASS and not name.startswith("_") else None
    if facts is None or len(facts.attributes.get(name, ())) != 1:
        return None
    if [ref.name for ref in resolver.mro(cls) if ref.kind == EXTERNAL] != [_ENUMERATION]:
        return None
    enumeration = f"{cls.path}:{cls.name}"
    literal = Literal(enumeration, (enumeration, name))
    return Possible(frozenset({TRUE}), frozenset([literal]), frozenset([enumeration]))


__all__ = ["member_of"]
