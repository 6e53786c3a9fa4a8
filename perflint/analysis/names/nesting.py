"""Which functions stand in which: where a name that is used in one of them is looked up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from perflint.analysis.names.refs import CLASS, Ref, Scope
from perflint.ir.summary import MODULE, CallFacts, FunctionFacts, Summary, Value, record

#: Functions whose names are kept at hand: those of one file are asked about together.
_MOST_FUNCTIONS_OF_NAMES = 8192


class Named(NamedTuple):
    """A call by one of its names: the number of the function that it stands in, that function, and the place of the
    call among those of the function.
    """

    number: int
    scope: Scope
    place: int
    call: CallFacts


class Nesting:
    """The scopes of a project's files. Knows what stands in what, not what it refers to."""

    def __init__(self, summaries: Mapping[str, Summary]) -> None:
        self._summaries = summaries
        self._scopes: dict[Scope, tuple[tuple[Scope, FunctionFacts], ...]] = {}
        #: By the identity of parameters, which equal functions of a large project share.
        self._positions: dict[int, dict[str, int]] = {}
        #: All functions of the project, by file, as they are written.
        self.functions = [
            (record(Scope, (path, qualname)), facts)
            for path, summary in summaries.items()
            for qualname, facts in summary.functions.items()
        ]
        self.by_name: dict[str, list[tuple[Scope, FunctionFacts]]] = {}
        for item in self.functions:
            self.by_name.setdefault(item[1].name, []).append(item)
        #: Of functions that bind names with a dot: `args.loader = DataLoader(...)`.
        self.dotted: dict[Scope, list[str]] = {}
        for scope, facts in self.functions:
            if facts.binds and "." in "".join(facts.binds):
                self.dotted[scope] = [name for name in facts.binds if "." in name]
        # What stands in the body of a class, its module's names are looked up for.
        for scope in [scope for scope in self.dotted if scope.function == MODULE]:
            for qualname in summaries[scope.path].classes:
                self.dotted.setdefault(record(Scope, (scope.path, qualname)), self.dotted[scope])
        self._modules = {path: Scope(path, MODULE) for path in summaries}
        #: The names that may mean something else in a function than in its module.
        self._own: dict[Scope, set[str]] = {}
        #: By file, the functions that define other functions or classes inside, with the names of those.
        self.holders = {path: _holders(summary) for path, summary in summaries.items()}

    @cached_property
    def calls(self) -> Mapping[str, list[Named]]:
        """All calls of the project by the last names of what is called, in the order of `functions`."""
        found: dict[str, list[Named]] = {}
        for number, (scope, facts) in enumerate(self.functions):
            for index, call in enumerate(facts.calls):
                func = call.func
                # As `last_name` has it, without a call for each of all calls.
                name = (
                    func.rpartition(".")[2]
                    if type(func) is str
                    else str(func[2])
                    if type(func) is tuple and func[0] == "attr"
                    else ""
                )
                item = record(Named, (number, scope, index, call))
                if name in found:
                    found[name].append(item)
                else:
                    found[name] = [item]
        return found

    @cached_property
    def keywords(self) -> Mapping[str, list[tuple[Named, Value]]]:
        """What all calls of the project pass by keyword, by the keyword."""
        found: dict[str, list[tuple[Named, Value]]] = {}
        for items in self.calls.values():
            for item in items:
                for key, value in item.call.keywords:
                    found.setdefault(key, []).append((item, value))
        return found

    def calls_of(self, names: Iterable[str]) -> list[Named]:
        """All calls of what goes by one of some last names, in the order of `functions`."""
        return sorted([item for name in names for item in self.calls.get(name, ())], key=_place)

    def function(self, scope: Scope) -> FunctionFacts:
        """The facts of a scope's function; in a class body those of the module."""
        functions = self._summaries[scope.path].functions
        return functions.get(scope.function) or functions[MODULE]

    def scopes(self, scope: Scope) -> tuple[tuple[Scope, FunctionFacts], ...]:
        """The function scopes a name is looked up in, innermost first, the module last. Class bodies do not count."""
        if scope in self._scopes:
            return self._scopes[scope]
        found = self._scopes[scope] = self._enclosing(scope)
        return found

    def _enclosing(self, scope: Scope) -> tuple[tuple[Scope, FunctionFacts], ...]:
        functions = self._summaries[scope.path].functions
        module = self._modules[scope.path]
        if scope.function == MODULE:
            return ((module, functions[MODULE]),)
        found: list[tuple[Scope, FunctionFacts]] = []
        current = scope.function
        while current and current != MODULE:
            facts = functions.get(current)
            if facts is None:  # a class body
                current = current.rpartition(".")[0].removesuffix(".<locals>")
                continue
            found.append((scope if current == scope.function else Scope(scope.path, current), facts))
            # A lambda is named by its place alone, wherever it stands.
            if ".<locals>." not in current and not current.startswith("<lambda"):
                break
            current = facts.owner
        return (*found, *self.scopes(module))

    def module(self, path: str) -> Scope:
        """The scope of a file's own body."""
        return self._modules[path]

    def is_global(self, dotted: str, scope: Scope) -> bool:
        """Whether a name, with attributes or without, surely means in a function what it means in its module."""
        if dotted[:5] == "self.":
            return False  # what it always is, by convention
        if scope in self._own:
            own = self._own[scope]
        else:
            if len(self._own) >= _MOST_FUNCTIONS_OF_NAMES:
                self._own.clear()
            own = self._own[scope] = self._names_in(scope)
        return (dotted.partition(".")[0] if "." in dotted else dotted) not in own

    def inner(self, scope: Scope) -> Collection[str]:
        """The names of the functions and classes that are defined in a function."""
        return self.holders[scope.path].get(scope.function, ())

    def _names_in(self, scope: Scope) -> set[str]:
        names: set[str] = set()
        holders = self.holders[scope.path]
        scopes = self.scopes(scope)
        for where, facts in scopes[:-1]:
            names.update(facts.binds, self.positions(facts))
            if facts.annotations:
                names.update(facts.annotations)
            if where.function in holders:
                names.update(holders[where.function])
        # `args.loader = DataLoader(...)` holds where it is written.
        for where, _ in scopes:
            if where in self.dotted:
                names.update([name.partition(".")[0] for name in self.dotted[where]])
        return names

    def enclosing_class(self, scope: Scope) -> Ref:
        """The class whose method a scope is or stands in; one without a name where there is none."""
        for _, facts in self.scopes(scope):
            if facts.in_class:
                return record(Ref, (CLASS, scope.path, facts.in_class))
        return Ref(CLASS, scope.path, "")

    def positions(self, facts: FunctionFacts) -> dict[str, int]:
        """The positions of a function's parameters by their names."""
        key = id(facts.params)
        if key in self._positions:
            return self._positions[key]
        found = self._positions[key] = {param.name.lstrip("="): index for index, param in enumerate(facts.params)}
        return found


def _place(item: Named) -> tuple[int, int]:
    return item.number, item.place


def _holders(summary: Summary) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for qualname in (*summary.functions, *summary.classes):
        holder, inside, name = qualname.rpartition(".<locals>.")
        if inside:
            found.setdefault(holder, set()).add(name)
    return found
