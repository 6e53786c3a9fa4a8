"""Which functions stand in which: where a name that is used in one of them is looked up."""

from __future__ import annotations

from collections.abc import Mapping

from perflint.facts.summary import MODULE, FunctionFacts, Summary
from perflint.program.refs import CLASS, Ref, Scope


class Nesting:
    """The scopes of a project's files. Knows what stands in what, not what it refers to."""

    def __init__(self, summaries: Mapping[str, Summary]) -> None:
        self._summaries = summaries
        self._scopes: dict[Scope, tuple[tuple[Scope, FunctionFacts], ...]] = {}
        #: By the identity of parameters, which equal functions of a large project share.
        self._positions: dict[int, dict[str, int]] = {}
        #: By file, the functions that define other functions or classes inside.
        self.holders = {
            path: {name.rpartition(".<locals>.")[0] for name in (*summary.functions, *summary.classes)}
            for path, summary in summaries.items()
        }

    def function(self, scope: Scope) -> FunctionFacts:
        """The facts of a scope's function; in a class body those of the module."""
        functions = self._summaries[scope.path].functions
        return functions.get(scope.function) or functions[MODULE]

    def scopes(self, scope: Scope) -> tuple[tuple[Scope, FunctionFacts], ...]:
        """The function scopes a name is looked up in, innermost first, the module last. Class bodies do not count."""
        known = self._scopes.get(scope)
        if known is None:
            known = self._scopes[scope] = self._enclosing(scope)
        return known

    def _enclosing(self, scope: Scope) -> tuple[tuple[Scope, FunctionFacts], ...]:
        functions = self._summaries[scope.path].functions
        found: list[tuple[Scope, FunctionFacts]] = []
        current = scope.function
        while current and current != MODULE:
            facts = functions.get(current)
            if facts is None:  # a class body
                current = current.rpartition(".")[0].removesuffix(".<locals>")
                continue
            found.append((scope if current == scope.function else Scope(scope.path, current), facts))
            current = facts.owner
        if scope.function == MODULE:
            return ((scope, functions[MODULE]),)
        return (*found, *self.scopes(Scope(scope.path, MODULE)))

    def enclosing_class(self, scope: Scope) -> Ref:
        """The class whose method a scope is or stands in; one without a name where there is none."""
        for _, facts in self.scopes(scope):
            if facts.in_class:
                return Ref(CLASS, scope.path, facts.in_class)
        return Ref(CLASS, scope.path, "")

    def positions(self, facts: FunctionFacts) -> dict[str, int]:
        """The positions of a function's parameters by their names."""
        known = self._positions.get(id(facts.params))
        if known is None:
            known = self._positions[id(facts.params)] = {
                param.name.lstrip("="): index for index, param in enumerate(facts.params)
            }
        return known
