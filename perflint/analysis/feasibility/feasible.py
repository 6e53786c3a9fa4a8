"""Whether some run of the program takes a hot path to a line: path conditions, decided by constants along the calls.

A line runs where the conditions around it hold and those of each call on the way to it. `Conditions` are pairs of a
test, as `ir.computed` has it, and what it has to come to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.feasibility.paths import Calls, TooManyError, Way, Ways
from perflint.analysis.feasibility.values import Values
from perflint.analysis.feasibility.worlds import Frame, World, frame_of
from perflint.analysis.names.refs import FUNCTION, Scope
from perflint.finding import Confidence, Heat, Hop
from perflint.ir.summary import Value

Conditions: TypeAlias = "tuple[tuple[Value, bool], ...]"


class Feasibility(NamedTuple):
    """What is known of a path: whether any run takes it; `only`, the option that a user has to change for it, empty
    where none; and the route, with how sure it is, where another than the printed one is meant.
    """

    feasible: bool
    only: str = ""
    route: tuple[Hop, ...] | None = None
    confidence: Confidence = Confidence.HIGH


FOUND = True
FEASIBLE = Feasibility(FOUND)
INFEASIBLE = Feasibility(not FOUND)
_FLOAT16 = frozenset({"torch.float16", "torch.half"})


class Paths:
    """Decides paths of one program."""

    def __init__(self, values: Values, ways: Ways) -> None:
        self._values = values
        self._ways = ways

    def along(self, scope: Scope, context: int, conditions: Conditions, heat: Heat) -> Feasibility:
        """Whether code under `conditions` in a function is reached by a hot path."""
        printed = self._ways.printed(scope, context)
        is_handed = self._is_handed(printed.calls) and self._has_its_mode(printed, scope, conditions)
        if is_handed and self._blocked(printed.calls, scope, conditions, World.BY_DEFAULT) is None:
            return FEASIBLE
        try:
            way = self._open(scope, context, conditions, heat, World.BY_DEFAULT)
            if way is not None:
                return Feasibility(FOUND, "", *self._ways.hops(way))
            way = printed if is_handed and self._blocked(printed.calls, scope, conditions, World.ANY) is None else None
            way = way or self._open(scope, context, conditions, heat, World.ANY)
        except TooManyError:
            return FEASIBLE
        if way is None:
            return INFEASIBLE
        blocked = self._blocked(way.calls, scope, conditions, World.BY_DEFAULT)
        only = self._option(*blocked) if blocked is not None else ""
        return Feasibility(FOUND, only) if way == printed else Feasibility(FOUND, only, *self._ways.hops(way))

    def in_training(self, scope: Scope, context: int, conditions: Conditions, heat: Heat) -> bool:
        """Whether modules in training mode take a hot path to the code, and not only those in evaluation mode."""
        printed = self._ways.printed(scope, context)
        if self._blocked(printed.calls, scope, conditions, World.TRAINING) is None:
            return True
        try:
            return self._open(scope, context, conditions, heat, World.TRAINING) is not None
        except TooManyError:
            return True

    def _open(self, scope: Scope, context: int, conditions: Conditions, heat: Heat, world: World) -> Way | None:
        """The first way that no condition blocks. What is blocked whoever calls it, is blocked for each caller."""
        return self._ways.first(
            scope,
            context,
            heat,
            lambda calls: self._is_handed(calls) and self._blocked(calls, scope, conditions, world) is None,
            lambda way: self._has_its_mode(way, scope, conditions),
        )

    def _has_its_mode(self, way: Way, scope: Scope, conditions: Conditions) -> bool:
        """Whether the code runs in the mode, of training or of evaluation, that its modules have on a way."""
        mode = self._ways.mode(way)
        return mode is World.ANY or self._blocked(way.calls, scope, conditions, mode) is None

    def _is_handed(self, calls: Calls) -> bool:
        """Whether each function on a way that is called as a parameter, `f(x)`, may be what the way itself hands over
        for that: other calls of the same function hand over others.
        """
        return all(self._may_be_handed(edge, calls[place + 1 :]) for place, edge in enumerate(calls))

    def _may_be_handed(self, edge: Edge, outer: Calls) -> bool:
        name = self._values.passing.facts(edge.caller).calls[edge.index].func if edge.index >= 0 else None
        if type(name) is not str or "." in name or not outer:
            return True
        owner = self._values.parameter_of(name, edge.caller)
        entry = next((call for call in outer if call.callee == owner), None)
        passed = self._values.passing.passed(entry, name).value if entry is not None else None
        if passed is None or entry is None:
            return True
        refs = [self._values.refs(value, entry.caller) for value in passed]
        functions = [Scope(ref.path, ref.name) for found in refs for ref in found if ref.kind == FUNCTION]
        is_told = all(found and all(ref.kind == FUNCTION for ref in found) for found in refs)
        return not is_told or edge.callee in functions

    def _blocked(
        self, calls: Calls, scope: Scope, conditions: Conditions, world: World
    ) -> tuple[Value, bool, Scope, Frame | None] | None:
        """The first condition on a way that does not hold, with where it is asked."""
        for place, (where, needed) in enumerate(self._on_the_way(calls, scope, conditions)):
            if needed:
                frame = frame_of(list(calls[place:]))
                for test, truth in needed:
                    if self._values.of(test, where, world, frame).truth is (not truth):
                        return test, truth, where, frame
        return None

    def _on_the_way(self, calls: Calls, scope: Scope, conditions: Conditions) -> Iterator[tuple[Scope, Conditions]]:
        yield scope, conditions
        for edge in calls:
            facts = self._values.passing.facts(edge.caller)
            if edge.index < 0 or not facts.branches:
                yield edge.caller, ()
            else:
                call = facts.calls[edge.index]
                yield edge.caller, facts.conditions_at(call.line, call.column)

    # What a user would have to change.

    def _option(self, test: Value, truth: bool, scope: Scope, frame: Frame | None) -> str:  # noqa: FBT001
        """The option that a test which does not hold by default asks for, as it has to be: `return_json=True`."""
        form = test[0] if type(test) is tuple else ""
        if form == "not":
            return self._option(test[1], not truth, scope, frame)
        if form in ("and", "or"):
            for part in test[1]:
                if part is not None and self._values.of(part, scope, World.BY_DEFAULT, frame).truth is (not truth):
                    return self._option(part, truth, scope, frame)
        if form == "compare" and test[3] == ("const", "NoneType", None):
            is_given = (test[1] in ("is", "==")) is not truth
            name = _last(test[2])
            return (f"`{name}` given" if is_given else f"`{name}=None`") if name else ""
        if form == "compare" and _last(test[2]) and type(test[3]) is tuple and test[3][0] == "const":
            return f"`{_last(test[2])} {test[1] if truth else _OPPOSITE[test[1]]} {test[3][2]!r}`"
        name = _last(test)
        if not name:
            return ""
        default = self._values.of(test, scope, World.BY_DEFAULT, frame)
        if default.literals is not None and all(item.value is None for item in default.literals):
            return f"`{name}` given"
        return f"`{name}={truth}`"

    # Tests of the dtype.

    def in_float16(self, conditions: Conditions, scope: Scope) -> bool:
        """Whether conditions hold for float16 values only, which hardly any training has by now."""
        return any(self._asks_for_float16(test, scope, truth=truth) for test, truth in conditions)

    def _asks_for_float16(self, test: Value, scope: Scope, *, truth: bool) -> bool:
        form = test[0] if type(test) is tuple else ""
        if form == ("and" if truth else "or"):
            return any(self._asks_for_float16(part, scope, truth=truth) for part in test[1])
        if form == "not":
            return self._asks_for_float16(test[1], scope, truth=not truth)
        if form != "compare" or test[1] not in (("==", "is", "in") if truth else ("!=", "is not", "not in")):
            return False
        other = test[3]
        listed = other[1] if type(other) is tuple and other[0] == "seq" else (other,)
        return bool(listed) and _last(test[2]) == "dtype" and all(self._is_float16(one, scope) for one in listed)

    def _is_float16(self, value: Value, scope: Scope) -> bool:
        refs = self._values.refs(value, scope)
        return bool(refs) and all(ref.name in _FLOAT16 for ref in refs)


_OPPOSITE = {
    "==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<", "in": "not in", "not in": "in",
    "is": "is not", "is not": "is",
}  # fmt: skip


def _last(value: Value) -> str:
    """The last name of a name or an attribute, "" for anything else."""
    if type(value) is str:
        return value.rpartition(".")[2]
    return str(value[2]) if type(value) is tuple and value[0] == "attr" else ""
