"""Whether some run of the program takes a hot path to a line: path conditions, decided by constants along the calls.

A line runs where the conditions around it hold and those of each call on the way to it. `Conditions` are pairs of a
test, as `ir.computed` has it, and what it has to come to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.feasibility.made_there import MadeThere
from perflint.analysis.feasibility.makings import Making, Makings
from perflint.analysis.feasibility.one_object import OneObject
from perflint.analysis.feasibility.paths import Calls, TooManyError, Way, Ways
from perflint.analysis.feasibility.picked import Picked
from perflint.analysis.feasibility.raising import Place
from perflint.analysis.feasibility.values import Values
from perflint.analysis.feasibility.worlds import KEEPING, Frame, World, frame_of
from perflint.analysis.names.refs import FUNCTION, Ref, Scope
from perflint.finding import Confidence, Heat, Hop
from perflint.ir.summary import Value

Conditions: TypeAlias = "tuple[tuple[Value, bool], ...]"
#: A condition that does not hold, with where it is asked.
Blocked: TypeAlias = "tuple[Value, bool, Scope, Frame | None]"


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
#: A function with one of these decorators runs without an object.
_STATIC = frozenset({"staticmethod", "classmethod"})
_NONE: Value = ("const", "NoneType", None)
#: How far the calls of what makes an object are followed, and of how many they may be.
_FURTHEST = 3
_MOST_MAKERS = 20
_FLOAT16 = frozenset({"torch.float16", "torch.half"})


class Paths:
    """Decides paths of one program."""

    def __init__(self, values: Values, ways: Ways, makings: Makings) -> None:
        self._values = values
        self._ways = ways
        self._makings = makings
        self._raising = values.raising
        self._one_object = OneObject(values.resolver)
        self._made_there = MadeThere(values.resolver, makings)
        self._picked = Picked(values.resolver, values.options)
        self._unmade: dict[tuple[Ref, World], Blocked | None] = {}

    def along(self, scope: Scope, context: int, conditions: Conditions, heat: Heat, place: Place) -> Feasibility:
        """Whether code under `conditions` in a function is reached by a hot path; where it is not hot, whether it is
        reached as far as its own function tells.
        """
        if self._raising.before(scope, place):
            return INFEASIBLE
        if heat <= Heat.ONCE:
            return self._within(scope, conditions)
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
        if blocked is not None and not self._is_offered(blocked, way, scope, context, conditions, heat):
            return INFEASIBLE
        return Feasibility(FOUND, only) if way == printed else Feasibility(FOUND, only, *self._ways.hops(way))

    def _within(self, scope: Scope, conditions: Conditions) -> Feasibility:
        if self._blocked((), scope, conditions, World.ANY) is not None:
            return INFEASIBLE
        blocked = self._blocked((), scope, conditions, World.BY_DEFAULT)
        if blocked is None:
            return FEASIBLE
        is_offered = self._is_anybodys(blocked, scope) or self._blocked((), scope, conditions, World.OFFERED) is None
        return Feasibility(FOUND, self._option(*blocked)) if is_offered else INFEASIBLE

    def _is_offered(
        self, blocked: Blocked, way: Way, scope: Scope, context: int, conditions: Conditions, heat: Heat
    ) -> bool:
        """Whether users may change what keeps the program, by default, from a line without an edit of its code, or of
        the configurations that stand beside it.
        """
        if self._is_anybodys(blocked, scope) or self._blocked(way.calls, scope, conditions, World.OFFERED) is None:
            return True
        try:
            return self._open(scope, context, conditions, heat, World.OFFERED) is not None
        except TooManyError:
            return True

    def _is_anybodys(self, blocked: Blocked, scope: Scope) -> bool:
        """Whether users of a library write what is around, or a command line has an option of the name asked for."""
        test, truth, where, frame = blocked
        if self._values.passing.is_open(scope):
            return True
        name = _asked(self._decisive(test, truth, where, frame)[0])
        return bool(name and self._values.options.defaults(name, where.path))

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
        """Whether each function on a way comes to its call, and, where it is called as a parameter, `f(x)`, may be what
        the way itself hands over for that: other calls of the same function hand over others.
        """
        if any(map(self._raising.never_enters, calls)):
            return False
        if not self._one_object.may_run(calls):
            return False
        return all(self._may_be_handed(edge, calls[place + 1 :]) for place, edge in enumerate(calls))

    def _may_be_handed(self, edge: Edge, outer: Calls) -> bool:
        name = self._values.passing.facts(edge.caller).calls[edge.index].func if edge.index >= 0 else None
        if type(name) is not str or not outer:
            return True
        if "." in name:
            return self._one_object.may_hold(name, edge, self._kept(name, edge.caller, outer))
        passed = self._handed(name, edge.caller, outer)
        if passed is None:
            return True
        refs = [self._values.refs(value, scope) for value, scope in passed if value != _NONE]
        functions = [Scope(ref.path, ref.name) for found in refs for ref in found if ref.kind == FUNCTION]
        is_told = all(found and all(ref.kind == FUNCTION for ref in found) for found in refs)
        return not is_told or edge.callee in functions

    def _handed(self, name: str, scope: Scope, outer: Calls) -> list[tuple[Value, Scope]] | None:
        """What the calls of a way hand over for a parameter, each with where it is written; None where nobody can tell.
        What a caller has as a parameter itself, its own call hands over.
        """
        owner = self._values.parameter_of(name, scope)
        place = next((place for place, call in enumerate(outer) if call.callee == owner), None)
        if place is None:
            return None
        caller = outer[place].caller
        found: list[tuple[Value, Scope]] = []
        for value in self._values.passing.passed(outer[place], name).value or ():
            found += self._traced(value, caller, outer[place + 1 :])
        return found or None

    def _traced(self, value: Value, scope: Scope, outer: Calls) -> list[tuple[Value, Scope]]:
        """A value followed to where it comes from: a parameter to what is passed, an attribute to the call that makes
        its object passes.
        """
        further = None
        if type(value) is str and "." not in value:
            further = self._handed(value, scope, outer)
        elif type(value) is str:
            further = self._kept(value, scope, outer) or None
        return [(value, scope)] if further is None else further

    def _kept(self, value: str, scope: Scope, outer: Calls) -> list[tuple[Value, Scope]]:
        """What `self.attribute` holds in a method of the object that a way is of, as far as that is told."""
        if not value.startswith("self.") or value.count(".") != 1:
            return []
        entry = next((call for call in outer if call.callee == scope and call.index >= 0), None)
        return self._values.receivers.attribute(value, entry) if entry is not None else []

    def _blocked(self, calls: Calls, scope: Scope, conditions: Conditions, world: World) -> Blocked | None:
        """The first condition on a way that does not hold, with where it is asked."""
        for place, (where, needed) in enumerate(self._on_the_way(calls, scope, conditions)):
            if needed:
                frame = frame_of(list(calls[place:]))
                for test, truth in needed:
                    if self._values.of(test, where, world, frame).truth is (not truth):
                        return test, truth, where, frame
        for edge in calls:
            if (blocked := self._held_by_none(edge, world) or self._never_picked(edge, world)) is not None:
                return blocked
        owners = dict.fromkeys(filter(None, map(self._object_of, (scope, *(edge.caller for edge in calls)))))
        return next((blocked for cls in owners if (blocked := self._without(cls, world)) is not None), None)

    # Objects that are not made.

    def _object_of(self, scope: Scope) -> Ref | None:
        """The class of the object that a function runs for; None for a function that needs none."""
        facts = self._values.passing.facts(scope)
        cls = self._values.class_around(scope)
        return cls if cls is not None and _STATIC.isdisjoint(map(str, facts.decorators)) else None

    def _without(self, cls: Ref, world: World) -> Blocked | None:
        """The first condition that keeps the program from making an object of a class; None where one may be made."""
        key = cls, world
        if key not in self._unmade:
            self._unmade[key] = None  # what only objects of the class make is no beginning
            self._unmade[key] = self._why_unmade(cls, world)
        return self._unmade[key]

    def _held_by_none(self, edge: Edge, world: World) -> Blocked | None:
        """The first condition that keeps the program from making what a call has for its object."""
        owner = self._object_of(edge.callee)
        made = self._made_there.of(edge, owner) if owner is not None else ()
        blocked = [self._fails(making, world) for making in made]
        return blocked[0] if blocked and None not in blocked else None

    def _never_picked(self, edge: Edge, world: World) -> Blocked | None:
        """The first condition that keeps an object from having the function of a call in its attribute."""
        blocked = [self._fails(pick, world) for pick in self._picked.of(edge)]
        return blocked[0] if blocked and None not in blocked else None

    def _why_unmade(self, cls: Ref, world: World) -> Blocked | None:
        first = None
        for making in self._makings.of(cls):
            blocked = self._fails(making, world)
            if blocked is None:
                return None
            first = first or blocked
        return first

    def _fails(self, making: Making, world: World, depth: int = 0) -> Blocked | None:
        for test, truth in making.conditions:
            if self._values.of(test, making.scope, world).truth is (not truth):
                option = _asked(self._decisive(test, truth, making.scope, None)[0])
                if world not in KEEPING or not self._values.options.configured(option):
                    return test, truth, making.scope, None
        return self._uncalled(making.scope, world, depth)

    def _uncalled(self, scope: Scope, world: World, depth: int) -> Blocked | None:
        """The first condition that keeps the program from calling the function that makes an object; None where a call
        of it, or of the functions around, is open, or nobody sees them all.
        """
        callers = self._values.passing.callers(scope) if depth < _FURTHEST else []
        if not callers or len(callers) > _MOST_MAKERS or self._values.passing.is_called_unseen(scope):
            return None
        first = None
        for edge in callers:
            if edge.index < 0 or edge.caller == scope:
                return None
            call = self._values.passing.facts(edge.caller).calls[edge.index]
            conditions = self._values.passing.facts(edge.caller).conditions_at(call.line, call.column)
            blocked = self._fails(Making(edge.caller, conditions), world, depth + 1)
            if blocked is None:
                return None
            first = first or blocked
        return first

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
        test, truth = self._decisive(test, truth, scope, frame)
        form = test[0] if type(test) is tuple else ""
        if form == "compare" and test[1] in ("in", "not in") and _is_literal(test[2]) and type(test[3]) is str:
            return f"`{test[2][2]}` given" if (test[1] == "in") is truth else f"no `{test[2][2]}`"
        name = _asked(test)
        if not name:
            return ""
        if form == "compare" and test[3] == ("const", "NoneType", None):
            return f"`{name}` given" if (test[1] in ("is", "==")) is not truth else f"`{name}=None`"
        if form == "compare" and not _is_literal(test[3]):
            return f"another `{name}`"
        if form == "compare" and _of_length(test[2]):
            return f"`{name}` given" if truth else f"no `{name}`"
        if form == "compare":
            return f"`{name} {test[1] if truth else _OPPOSITE[test[1]]} {test[3][2]!r}`"
        default = self._values.of(test, scope, World.BY_DEFAULT, frame)
        is_switch = default.literals is None or any(item.type in ("bool", "str") for item in default.literals)
        return f"`{name}={truth}`" if is_switch else f"`{name}` given" if truth else f"no `{name}`"

    def _decisive(self, test: Value, truth: bool, scope: Scope, frame: Frame | None) -> tuple[Value, bool]:  # noqa: FBT001
        """The part of a test that keeps it, by default, from coming to what it has to."""
        form = test[0] if type(test) is tuple else ""
        if form == "not":
            return self._decisive(test[1], not truth, scope, frame)
        for part in test[1] if form in ("and", "or") else ():
            if part is not None and self._values.of(part, scope, World.BY_DEFAULT, frame).truth is (not truth):
                return self._decisive(part, truth, scope, frame)
        return test, truth

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


#: What looks something up by a text.
_BY_KEY = frozenset({"get", "pop", "getenv", "getattr"})
_OPPOSITE = {
    "==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<", "in": "not in", "not in": "in",
    "is": "is not", "is not": "is",
}  # fmt: skip


def _asked(test: Value) -> str:
    """The name of the option that a test asks for, "" where it asks for nothing that is told."""
    form = test[0] if type(test) is tuple else ""
    if form == "compare":
        is_choice = type(test[3]) is tuple and test[3][0] == "seq"  # one of several, of which the default is but one
        return "" if is_choice else _asked(test[2]) or _asked(test[3])
    if form == "call" and type(test[1]) is str:
        base, _, name = test[1].rpartition(".")
        first = test[2][1 if name == "getattr" and len(test[2]) > 1 else 0] if test[2] else None
        if name in _BY_KEY and isinstance(first, tuple) and first[:2] == ("const", "str"):
            return str(first[2])
        return _asked(first) if not base and first is not None else _last(base or name)
    return _last(test)


def _is_literal(value: Value) -> bool:
    is_told = type(value) is tuple and value[0] == "const"
    return is_told and (value[1] == "NoneType" or value[2] is not None)


def _of_length(value: Value) -> bool:
    return type(value) is tuple and value[:2] == ("call", "len")


def _last(value: Value) -> str:
    """The last name of a name or an attribute, the key of an item, "" for anything else."""
    if type(value) is str:
        return value.rpartition(".")[2]
    return str(value[2] or "") if type(value) is tuple and value[0] in ("attr", "item") else ""
