"""Functions that give one literal and do nothing else: `def is_fast(self): return False`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from perflint.analysis.feasibility.evaluate import literal
from perflint.analysis.feasibility.lattice import Possible, joined
from perflint.analysis.names.refs import CLASS, FUNCTION, Ref, Refs, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import FunctionFacts, Value

_PLAIN = frozenset({"property", "staticmethod", "classmethod", "cached_property", "functools", "override"})


class ConstantFunctions:
    """Those of one program. `is_open` tells whether users of the program may call a function, or have its class."""

    def __init__(self, resolver: Resolver, is_open: Callable[[Scope], bool]) -> None:
        self._resolver = resolver
        self._is_open = is_open

    def of(self, refs: Refs, *, by_default: bool) -> Possible | None:
        """What calling something gives, None where that is no literal. A method of an open class may be overridden by
        what nobody sees.
        """
        found: list[Possible] = []
        for ref in refs:
            for scope, facts in self._versions(ref) if ref.kind == FUNCTION else ():
                value = _given_by(facts)
                if value is None or (facts.in_class and not by_default and self._is_open(scope)):
                    return None
                found.append(literal(value))
        return joined(found) if found and all(ref.kind == FUNCTION for ref in refs) else None

    def _versions(self, ref: Ref) -> Iterator[tuple[Scope, FunctionFacts]]:
        """A function and, of a method, what the classes below have in its stead."""
        facts = self._resolver.summaries[ref.path].functions[ref.name]
        yield Scope(ref.path, ref.name), facts
        for cls in self._resolver.hierarchy.below(Ref(CLASS, ref.path, facts.in_class)) if facts.in_class else ():
            name = f"{cls.name}.{facts.name}"
            if cls.path and name in self._resolver.summaries[cls.path].functions:
                yield Scope(cls.path, name), self._resolver.summaries[cls.path].functions[name]


def _given_by(facts: FunctionFacts) -> Value:
    """The literal that is all of a function's text; None where there is more in it."""
    if len(facts.returns) != 1 or facts.is_generator or facts.calls or facts.contexts or facts.binds or facts.computed:
        return None
    value = facts.returns[0]
    is_literal = type(value) is tuple and value[0] == "const" and value[2] is not None
    is_in_no_other = not facts.owner or facts.owner == facts.in_class
    words = {*facts.identifiers.split()} - _PLAIN - {*facts.returns_annotation.split()}
    return value if is_literal and is_in_no_other and not words else None
