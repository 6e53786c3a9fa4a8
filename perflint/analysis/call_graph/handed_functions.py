"""Functions of the project that a call is handed: a library runs them, or the function of the project that it calls."""

from __future__ import annotations

from collections.abc import Sequence

from perflint.analysis.names.refs import FUNCTION, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import CallFacts, FunctionFacts, Value

#: Library functions that keep a function for a single later moment, or run it somewhere else.
_KEEPERS = frozenset(
    "Thread Process Timer register signal spawn Popen set_defaults add_argument submit apply_async map_async "
    "starmap_async imap imap_unordered starmap run_in_executor delayed".split()
)


class HandedFunctions:
    """What calls of one program are handed that may be run."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        functions = resolver.nesting.functions
        #: Functions that give back one they define: `schedule(self.make_step())` runs what that gives.
        self._makers = {name for scope, _ in functions if (name := self._maker_of(scope))}
        #: The files that hold lambdas.
        self._with_lambdas = {scope.path for scope, _ in functions if scope.function.startswith("<lambda")}

    def functions(self, call: CallFacts, facts: FunctionFacts) -> Sequence[Value]:
        """What a call is given that may be a function of the project."""
        named = self._resolver.nesting.by_name
        found = []
        for value in _given(call):
            if type(value) is str:
                last = value.rpartition(".")[2] if "." in value else value
                if last in named or (value in facts.binds and self._is_bound(value, facts)):
                    found.append(value)
            elif value is not None and (value[0] == "lambda" or (value[0] == "call" and self._makes_function(value))):
                found.append(value)
        return found

    def _is_bound(self, name: str, facts: FunctionFacts) -> bool:
        """Whether a function binds a name to what may be a function of the project."""
        named = self._resolver.nesting.by_name
        for value in facts.binds[name]:
            if isinstance(value, str):
                if value.rpartition(".")[2] in named:
                    return True
            elif value is not None and (value[0] == "lambda" or (value[0] == "call" and self._makes_function(value))):
                return True
        return False

    def _maker_of(self, scope: Scope) -> str:
        """The name of the function that a function is defined in and given back by, empty where there is none."""
        outer, _, name = scope.function.rpartition(".<locals>.")
        maker = self._resolver.summaries[scope.path].functions.get(outer) if outer else None
        return maker.name if maker is not None and name in maker.returns else ""

    def _makes_function(self, call: Value) -> bool:
        func = call[1]
        return isinstance(func, str) and (func.rpartition(".")[2] in self._makers or func.endswith("partial"))

    def callbacks(self, call: CallFacts, scope: Scope, facts: FunctionFacts) -> list[Scope]:
        """Project functions handed to a library: it runs them about where it is called."""
        given = call.args[:1] if maps_a_name(call) else self.functions(call, facts)
        if not given or (isinstance(call.func, str) and call.func.rpartition(".")[2] in _KEEPERS):
            return []
        found: list[Scope] = []
        for value in given:
            found += [Scope(ref.path, ref.name) for ref in self._resolver.refs(value, scope) if ref.kind == FUNCTION]
        return list(dict.fromkeys(found)) if found else found

    def handed_on(self, call: CallFacts, scope: Scope, targets: list[Scope]) -> list[Scope]:
        """Functions defined where they are handed to a function of the project that runs what it is handed:
        `apply_to_sample(_move_to_cuda, sample)`. Each is as hot as its own call, whoever else calls that function.
        """
        inner = self._resolver.nesting.inner(scope)
        if not inner and scope.path not in self._with_lambdas:
            return []
        # Few calls hand on a function: that is told first, without a call for each value.
        local = [value for value in _given(call) if (type(value) is tuple and value[0] == "lambda") or value in inner]
        if not local:
            return []
        given: list[tuple[int | str, Value]] = [*enumerate(call.args), *call.keywords]
        found: list[Scope] = []
        for place, value in given:
            if value not in local:
                continue
            for target in targets:
                if self._runs_parameter(target, place):
                    refs = self._resolver.refs(value, scope)
                    found += [Scope(ref.path, ref.name) for ref in refs if ref.kind == FUNCTION]
        return list(dict.fromkeys(found))

    def _runs_parameter(self, target: Scope, place: int | str) -> bool:
        """Whether a function, or one defined in it, calls what it is given at `place`."""
        functions = self._resolver.summaries[target.path].functions
        facts = functions[target.function]
        names = [param.name.lstrip("=") for param in facts.params]
        if facts.in_class and names and "staticmethod" not in facts.decorators:
            names = names[1:]
        name = place if isinstance(place, str) else names[place] if place < len(names) else ""
        if name not in names:
            return False
        inside = f"{target.function}.<locals>."
        return any(
            call.func == name
            for qualname, other in functions.items()
            if qualname == target.function or qualname.startswith(inside)
            for call in other.calls
        )


def maps_a_name(call: CallFacts) -> bool:
    """Whether what a name stands for is run on each element: `map(function, *rows)`."""
    return call.func == "map" and bool(call.args) and isinstance(call.args[0], str)


def _given(call: CallFacts) -> Sequence[Value]:
    return [*call.args, *[value for _, value in call.keywords]] if call.keywords else call.args
