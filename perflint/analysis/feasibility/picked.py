"""Functions that an object keeps in an attribute, each in a branch of its own: `self.solve` runs none whose branch no
object takes.
"""

from __future__ import annotations

from collections.abc import Iterator

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.feasibility.makings import Making
from perflint.analysis.feasibility.options import Options
from perflint.analysis.names.refs import CLASS, FUNCTION, Ref, Scope
from perflint.analysis.names.resolver import Resolver


class Picked:
    """Answers for one program."""

    def __init__(self, resolver: Resolver, options: Options) -> None:
        self._resolver = resolver
        self._options = options
        self._known: dict[tuple[Ref, str, Scope], tuple[Making, ...]] = {}

    def of(self, edge: Edge) -> tuple[Making, ...]:
        """Where the function that a call runs, `self.solve(x)`, is put there, and under which tests; nothing where the
        attribute may be given something that is not plain to see.
        """
        facts = self._resolver.summaries[edge.caller.path].functions[edge.caller.function]
        func = facts.calls[edge.index].func if edge.index >= 0 and not edge.callback else None
        if type(func) is not str or not func.startswith("self.") or func.count(".") != 1:
            return ()
        cls = self._resolver.nesting.enclosing_class(edge.caller)
        if not cls.name or self._resolver.nesting.enclosing_class(edge.callee).name:
            return ()
        key = cls, func.removeprefix("self."), edge.callee
        if key not in self._known:
            found = list(self._places(*key))
            self._known[key] = () if None in found else tuple([item for item in found if item is not None])
        return self._known[key]

    def _places(self, cls: Ref, name: str, callee: Scope) -> Iterator[Making | None]:
        """The stores of a function; None for what nobody can tell."""
        if self._options.set_from_outside.get(name):
            yield None
        for owner in (*self._resolver.mro(cls), *self._resolver.hierarchy.below(cls)):
            facts = self._resolver.hierarchy.facts(owner)
            if facts is None:
                continue
            if name in facts.unclear or name in facts.computed:
                yield None
            for value, where in facts.attributes.get(name, ()):
                refs = self._resolver.refs(value, Scope(owner.path, where))
                if not refs or any(ref.kind not in (FUNCTION, CLASS) for ref in refs):
                    yield None
                elif Ref(FUNCTION, callee.path, callee.function) in refs:
                    yield from self._stores(Scope(owner.path, where), name, value)

    def _stores(self, scope: Scope, name: str, value: object) -> Iterator[Making | None]:
        facts = self._resolver.summaries[scope.path].functions.get(scope.function)
        places = [pick[2:] for pick in facts.picks if pick[:2] == (name, value)] if facts is not None else []
        if not places or facts is None:
            yield None
        else:
            yield from (Making(scope, facts.conditions_at(*place)) for place in places)
