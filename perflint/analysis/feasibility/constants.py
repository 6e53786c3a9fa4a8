"""What values of summaries come to where that is written down: literals, and names, attributes and parameters that hold
one.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.feasibility.configs import Configs
from perflint.analysis.names.refs import CLASS, INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import MODULE, FunctionFacts, Value

_DEEPEST = 6

#: What a call hands over: by parameter, a value and where it is written.
Given: TypeAlias = Mapping[str, tuple[Value, Scope]]
NOTHING_GIVEN: Given = {}


class Constants:
    """The literals of one program. A value that may be several has several; one that is not known has none."""

    def __init__(self, resolver: Resolver, graph: CallGraph, configs: Configs) -> None:
        self._resolver = resolver
        self._graph = graph
        self._configs = configs

    def of(self, value: Value, scope: Scope, given: Given = NOTHING_GIVEN, depth: int = 0) -> tuple[Value, ...] | None:
        """The literals, as `("const", type, value)`, that a value written in `scope` may be; None where any of them
        is not known.
        """
        if value is None or depth > _DEEPEST:
            return None
        if not isinstance(value, str):
            if value[0] == "const":
                return (value,)
            if value[0] == "either":
                return self._any(((part, scope) for part in value[1]), depth)
            return self._set(value, scope, depth) if value[0] == "item" else None
        if "." in value:
            return self._attribute(value, scope, depth)
        return self._name(value, scope, given, depth)

    def _any(self, values: Iterable[tuple[Value, Scope]], depth: int = 0) -> tuple[Value, ...] | None:
        found: dict[Value, None] = {}
        for value, scope in values:
            literals = self.of(value, scope, depth=depth + 1)
            if literals is None:
                return None
            found.update(dict.fromkeys(literals))
        return tuple(found) or None

    def _name(self, name: str, scope: Scope, given: Given, depth: int) -> tuple[Value, ...] | None:
        for where, facts in self._resolver.nesting.scopes(scope):
            if name in facts.unclear:
                return None
            if name in facts.binds:
                kept = self._kept(name, where, facts, given if where == scope else NOTHING_GIVEN, depth)
                if kept is not None:
                    return kept
                return self._any(((value, where) for value in facts.binds[name]), depth)
            if name in self._resolver.nesting.positions(facts):
                return self._handed(name, where, facts, given if where == scope else NOTHING_GIVEN, depth)
        definitions = self._resolver.written.definitions(name, scope)
        return self._any(definitions, depth) if definitions else None

    def _handed(
        self, name: str, scope: Scope, facts: FunctionFacts, given: Given, depth: int
    ) -> tuple[Value, ...] | None:
        if name in given:
            value, caller = given[name]
            return self.of(value, caller, depth=depth + 1)
        return self.of_parameter(scope, facts, name, depth)

    def _kept(
        self, name: str, scope: Scope, facts: FunctionFacts, given: Given, depth: int
    ) -> tuple[Value, ...] | None:
        """What a parameter is that `every = every or self.every` keeps, where something is handed over."""
        falls_back = all(
            type(value) is tuple and value[0] == "either" and value[1][0] == name for value in facts.binds[name]
        )
        if not falls_back or name not in self._resolver.nesting.positions(facts):
            return None
        literals = self._handed(name, scope, facts, given, depth)
        return literals if literals is not None and all(item[2] for item in literals) else None

    def of_parameter(self, scope: Scope, facts: FunctionFacts, name: str, depth: int = 0) -> tuple[Value, ...] | None:
        """What a parameter is by default. What calls pass instead counts where they write it down: a value that a user
        sets when the program is run is the default until then.
        """
        param = next((item for item in facts.params if item.name.lstrip("=") == name), None)
        if param is None:
            return None
        default = self.of(param.default, Scope(scope.path, facts.owner or MODULE), depth=depth + 1)
        passed: dict[Value, None] = {}
        edges = [edge for edge in self._graph.incoming.get(scope, ()) if edge.index >= 0 and not edge.callback]
        made, omitted = self._configs.constructed(facts, name)
        leaves_out = not (edges or made) or omitted
        for value in made:
            literals = self.of(value, scope, depth=depth + 1)
            if literals is None:
                return None
            passed.update(dict.fromkeys(literals))
        for edge in edges:
            value = self._graph.argument(edge, name)
            if value is None:
                leaves_out = True
            literals = self.of(value, edge.caller, depth=depth + 1) or self.of_option(value, edge.caller) or None
            if literals is None:
                leaves_out = leaves_out or default is not None
            passed.update(dict.fromkeys(literals or ()))
        if leaves_out:
            if default is None:
                return None
            passed.update(dict.fromkeys(default))
        return tuple(passed) or None

    def of_option(self, value: Value, scope: Scope) -> tuple[Value, ...]:
        """What an option of the command line is unless a user sets it: `args.every`, of the parser that is nearest, or
        a name that holds it.
        """
        kept = self._resolver.summaries[scope.path].functions[scope.function].binds.get(value, ()) if value else ()
        if len(kept) == 1 and isinstance(kept[0], str) and "." in kept[0]:
            value = kept[0]  # `every = args.every`
        if not isinstance(value, str) or not self._configs.options.holds(value.rpartition(".")[0], scope):
            return ()
        found = self._configs.options.defaults(value.rpartition(".")[2], scope.path)
        folder = posixpath.dirname(scope.path)
        beside = [item for item in found if posixpath.dirname(item[1].path) == folder]
        values = [default for default, _ in beside or found]
        return tuple(values) if all(isinstance(item, tuple) and item[0] == "const" for item in values) else ()

    def _attribute(self, dotted: str, scope: Scope, depth: int) -> tuple[Value, ...] | None:
        base, _, name = dotted.rpartition(".")
        for ref in self._resolver.refs(base, scope):
            if ref.kind in (INSTANCE, CLASS):
                return self._of_class(Ref(CLASS, ref.path, ref.name), name, depth)
        definitions = self._resolver.written.definitions(dotted, scope)
        return self._any(definitions, depth) if definitions else self._set(dotted, scope, depth)

    def _set(self, value: Value, scope: Scope, depth: int) -> tuple[Value, ...] | None:
        """What is read of a configuration."""
        path = self._configs.path(value, scope)
        if len(path) == 1 and self._configs.options.defaults(path[0], scope.path):
            return None  # a command line says otherwise
        given = self._configs.given(path) if path else ()
        return self._any(given, depth) if given else None

    def _of_class(self, cls: Ref, name: str, depth: int) -> tuple[Value, ...] | None:
        """What an attribute of a class is given, where that is all there is."""
        name = self._resolver.hierarchy.stored_as(cls, name)
        for owner in self._resolver.mro(cls):
            facts = self._resolver.hierarchy.facts(owner)
            if facts is not None and name in facts.attributes:
                written = facts.attributes[name]
                return self._any(((value, Scope(owner.path, where)) for value, where in written), depth)
        return None
