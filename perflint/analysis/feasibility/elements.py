"""What a loop goes through where that is written down: `for kind in ("boxes", "masks")`, handed over or kept or not."""

from __future__ import annotations

from functools import cached_property
from typing import TypeAlias

from perflint.analysis.feasibility.attribute_values import values_of
from perflint.analysis.feasibility.parameters import Passing, default_of
from perflint.analysis.names.refs import Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.notation import MOST_LITERALS
from perflint.ir.summary import MODULE, FunctionFacts, Value

#: The values that turns of a loop may give, each with where it is written; None where it may be others as well.
Given: TypeAlias = "list[tuple[Value, Scope]] | None"
#: Give what they are given.
_SAME = frozenset({"tuple", "list", "sorted", "reversed", "set", "frozenset"})
_FILLING = frozenset({"append", "extend", "insert", "add"})
#: Into these nothing can be put.
_FIXED = frozenset({("call", "tuple"), ("call", "frozenset")})
_DEEPEST = 6
_MOST_CALLERS = 8


class Elements:
    """The containers of one program."""

    def __init__(self, resolver: Resolver, passing: Passing) -> None:
        self._resolver = resolver
        self._passing = passing

    def of_turns(self, name: str, scope: Scope, facts: FunctionFacts) -> tuple[Given, list[Value]]:
        """What the turns of loops give a name, None where that is not told; and how the name is bound there."""
        given: list[tuple[Value, Scope]] = []
        iterated: list[Value] = []
        for loop in facts.loops:
            if name in loop.targets:
                inside = self.of(loop.iterable, scope) if len(loop.targets) == 1 else None
                if inside is None:
                    return None, []
                given += inside
                iterated.append(("item", loop.iterable, None))
        return given, iterated

    def of(self, container: Value, scope: Scope, deepest: int = _DEEPEST) -> Given:
        """What is in a container that is written in `scope`."""
        if deepest < 0 or container is None:
            return None
        if type(container) is str:
            return self._of_name(container, scope, deepest)
        form = container[0]
        if form == "seq":
            return [(item, scope) for item in container[1]] if len(container[1]) < MOST_LITERALS else None
        if form == "call" and container[1] in _SAME and len(container[2]) == 1:
            return self.of(container[2][0], scope, deepest - 1)
        if form == "each":
            _, element, source = container
            facts = self._resolver.nesting.function(scope)
            is_itself = type(element) is str and ("item", source, None) in facts.binds.get(element, ())
            return self.of(source, scope, deepest - 1) if is_itself else None
        return None

    def _of_name(self, dotted: str, scope: Scope, deepest: int) -> Given:
        cls, name = self._resolver.nesting.enclosing_class(scope), dotted.rpartition(".")[2]
        is_filled = name in self._filled or (
            bool(cls.name) and self._resolver.hierarchy.stored_as(cls, name) in self._filled
        )
        given = self._kept(dotted, scope) if "." in dotted else self._named(dotted, scope)
        found: list[tuple[Value, Scope]] = []
        for value, where in given or ():
            may_grow = is_filled and type(value) is tuple and value[:2] not in _FIXED
            inside = None if may_grow else self.of(value, where, deepest - 1)
            if inside is None:
                return None
            found += inside
        return found or None

    def _kept(self, dotted: str, scope: Scope) -> Given:
        base, _, name = dotted.rpartition(".")
        cls = self._resolver.nesting.enclosing_class(scope)
        if base != "self" or not cls.name:
            return None
        found: list[tuple[Value, Scope]] = []
        name = self._resolver.hierarchy.stored_as(cls, name)
        for owner in (*self._resolver.mro(cls), *self._resolver.hierarchy.below(cls)):
            facts = self._resolver.hierarchy.facts(owner)
            if facts is not None:
                if name in facts.unclear:
                    return None
                found += values_of(facts, owner, name)
        return found

    def _named(self, name: str, scope: Scope) -> Given:
        for where, facts in self._resolver.nesting.scopes(scope):
            is_parameter = name in self._resolver.nesting.positions(facts)
            if name in facts.unclear or (is_parameter and name in facts.binds):
                return None
            if is_parameter:
                return self._passed(name, where)
            if name in facts.binds:
                return [(value, where) for value in facts.binds[name]]
        facts = self._resolver.summaries[scope.path].functions[MODULE]
        return [(value, Scope(scope.path, MODULE)) for value in facts.binds.get(name, ())]

    def _passed(self, name: str, scope: Scope) -> Given:
        callers = self._passing.callers(scope)
        if not callers or len(callers) > _MOST_CALLERS or self._passing.is_called_unseen(scope):
            return None
        found: list[tuple[Value, Scope]] = []
        for edge in callers:
            passed = self._passing.passed(edge, name)
            if passed.left_out and (default := default_of(self._passing.facts(scope), name)) is not None:
                found.append((default, Scope(scope.path, MODULE)))
            elif passed.value is None:
                return None
            found += [(value, edge.caller) for value in passed.value or ()]
        return found

    @cached_property
    def _filled(self) -> frozenset[str]:
        """The identifiers of the functions that put something into a list: into which is not recorded."""
        found: set[str] = set()
        for summary in self._resolver.summaries.values():
            for facts in summary.functions.values():
                words = facts.identifiers.split()
                if not _FILLING.isdisjoint(words):
                    found.update(words)
            for statement in summary.statements:
                words = statement.identifiers.split()
                if not _FILLING.isdisjoint(words):
                    found.update(words)
        return frozenset(found)
