"""What calls hand a parameter: their own arguments, and what they hand on as they came (`f(*args, **kwargs)`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol, TypeAlias

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.names.refs import Scope
from perflint.ir.summary import SPREAD, CallFacts, FunctionFacts, Value

_FAR = 1 << 30
#: No call is written with so many arguments. Functions that hand on one more each time have no end otherwise.
_MOST = 64
_SPREADS = ("", SPREAD)
_NONE: dict[int, Value] = {}


class Graph(Protocol):
    """What is asked of the call graph whose calls these are."""

    incoming: dict[Scope, list[Edge]]

    def argument(self, edge: Edge, name: str) -> Value: ...

    def argument_at(self, edge: Edge, name: str, place: int | None) -> Value: ...

    def facts(self, scope: Scope) -> FunctionFacts: ...


class _Spread(NamedTuple):
    """A call that spreads something: where among its arguments it hands on the `*args` of its own function, far behind
    them where it does not, whether it hands on its `**options`, and what other dicts it unpacks.
    """

    begins: int
    hands: bool
    unpacked: tuple[Value, ...] = ()


class _Given(NamedTuple):
    """What the calls of a function give it, by keyword and by the number of the call; and the numbers of those that
    hand on what they were called with, with how. Of how many edges that was.
    """

    edges: int
    by_keyword: dict[str, dict[int, Value]]
    spreading: dict[int, _Spread]
    #: Of these, the callers that hand on their `**options`, each with its own parameters.
    handing: list[tuple[Scope, dict[str, int]]]


#: A function, and a keyword or a place (`_FAR` where there is none) that it has no parameter of its own for.
_Asked: TypeAlias = tuple[Scope, str, int]


class Handing:
    """Answers for one call graph, once its plain calls are connected."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        #: By function, keyword and place: what callers hand it beyond its own parameters.
        self._rest: dict[_Asked, list[tuple[Value, Scope]]] = {}
        self._places: dict[Scope, dict[str, int]] = {}
        self._spreads: dict[tuple[Scope, int], _Spread | None] = {}
        self._given: dict[Scope, _Given] = {}

    def places(self, scope: Scope) -> dict[str, int]:
        """The positions of a function's parameters among the arguments of a call."""
        known = self._places.get(scope)
        if known is None:
            known = self._places[scope] = places(self._graph.facts(scope))
        return known

    def values(self, scope: Scope, name: str) -> list[tuple[Value, Scope]]:
        """What callers of a function pass for its parameter, each with where it is written."""
        found: list[tuple[Value, Scope]] = []
        edges = self._graph.incoming.get(scope)
        place = self.places(scope).get(name) if edges else None
        for edge in edges or ():
            if edge.stands_in:
                continue
            value = self._graph.argument_at(edge, name, place)
            if value is not None:
                found.append((value, edge.caller))
            elif not edge.callback and edge.index >= 0:
                spread = self._spread(edge.caller, edge.index)
                if spread is not None:
                    asked = self._handed_on(spread, edge.caller, name, _FAR if place is None else place)
                    found += self._given_beyond(asked) if asked is not None else []
                    if spread.unpacked:
                        found += [(entry, edge.caller) for entry in self._entries(spread.unpacked, edge.caller, name)]
        return found

    def is_left_out(self, scope: Scope, name: str) -> bool:
        """Whether a call of a function surely passes nothing for its parameter: it is what it is by default there."""
        return any(
            edge.index >= 0
            and not (edge.stands_in or edge.callback)
            and self._graph.argument(edge, name) is None
            and self._spread(edge.caller, edge.index) is None
            for edge in self._graph.incoming.get(scope, ())
        )

    def _entries(self, dicts: Iterable[Value], caller: Scope, key: str) -> Iterator[Value]:
        """What dicts hold under a key that a function writes out, itself or in each branch: `f(**options)`."""
        facts = self._graph.facts(caller)
        for value in dicts:
            if isinstance(value, str):
                written = [item for item in facts.binds.get(value, ()) if isinstance(item, tuple)]
                yield from self._entries(written, caller, key)
            elif isinstance(value, tuple) and value[0] == "map":
                yield from (item for name, item in value[1] if name == key and item is not None)
            elif isinstance(value, tuple) and value[:2] == ("call", "dict"):
                yield from (item for name, item in value[3] if name == key and item is not None)

    def rest(self, scope: Scope) -> list[tuple[Value, Scope]]:
        """What callers of a function pass for its `*args`, as one value each."""
        first = len(self.places(scope))
        found: list[tuple[Value, Scope]] = []
        for edge in self._graph.incoming.get(scope, ()):
            if not (edge.stands_in or edge.callback or edge.index < 0):
                call = self._graph.facts(edge.caller).calls[edge.index]
                spread = self._spread(edge.caller, edge.index)
                items = call.args[first:] if spread is None else call.args[first : spread.begins]
                if items:
                    found.append((("seq", items), edge.caller))
        return found

    def _spread(self, caller: Scope, index: int) -> _Spread | None:
        """What a call of a function spreads, None where it spreads nothing: what most calls do is told at once."""
        key = caller, index
        if key not in self._spreads:
            facts = self._graph.facts(caller)
            call = facts.calls[index]
            found = None
            if call.keywords and any(name in _SPREADS for name, _ in call.keywords):
                options = {param.name for param in facts.params if param.name.startswith("**")}
                hands = any(name == "" and f"**{value}" in options for name, value in call.keywords)
                unpacked = tuple([value for name, value in call.keywords if name == "" and f"**{value}" not in options])
                found = _Spread(place_of_rest(call, facts), hands, unpacked)
            self._spreads[key] = found
        return self._spreads[key]

    def _handed_on(self, spread: _Spread, caller: Scope, name: str, place: int) -> _Asked | None:
        """What has to be asked of the callers of a function that hands on what it was called with."""
        if caller not in self._graph.incoming:
            return None
        named = self.places(caller)
        behind = len(named) + place - spread.begins if spread.begins <= place < _FAR else _FAR
        if behind > _MOST:
            behind = _FAR
        key = name if spread.hands and name not in named else ""
        return (caller, key, behind) if key or behind < _FAR else None

    def _given_beyond(self, first: _Asked) -> list[tuple[Value, Scope]]:
        """What callers give a function by a keyword or at a place that it has no parameter of its own for, however many
        functions hand it on.
        """
        known = self._rest.get(first)
        if known is not None:
            return known
        found: list[tuple[Value, Scope]] = []
        seen, waiting = {first}, [first]
        while waiting:
            asked = waiting.pop()
            known = self._rest.get(asked)
            if known is not None:
                found += known
                continue
            further = self._beyond(*asked, found)
            waiting += [each for each in reversed(further) if each not in seen]
            seen.update(further)
        self._rest[first] = found
        return found

    def _given_to(self, edges: list[Edge]) -> _Given:
        given = _Given(len(edges), {}, {}, [])
        for number, edge in enumerate(edges):
            if edge.callback or edge.index < 0 or edge.stands_in:
                continue
            for name, value in self._graph.facts(edge.caller).calls[edge.index].keywords:
                given.by_keyword.setdefault(name, {}).setdefault(number, value)
            spread = self._spread(edge.caller, edge.index)
            if spread is not None:
                given.spreading[number] = spread
                if spread.hands:
                    given.handing.append((edge.caller, self.places(edge.caller)))
        return given

    def _beyond(self, scope: Scope, key: str, place: int, found: list[tuple[Value, Scope]]) -> list[_Asked]:
        """Put what the calls of a function give into `found`; what has to be asked of those that hand it on."""
        edges = self._graph.incoming.get(scope)
        if not edges:
            return []
        if key and place >= _FAR:
            return self._by_keyword(scope, edges, key, place, found)
        further: list[_Asked | None] = []
        for edge in edges:
            if edge.callback or edge.index < 0 or edge.stands_in:
                continue
            caller = edge.caller
            call = self._graph.facts(caller).calls[edge.index]
            if key:
                given = [value for name, value in call.keywords if name == key]
                if given and given[0] is not None:
                    found.append((given[0], caller))
                    continue
            spread = self._spread(caller, edge.index)
            if place < len(call.args) and (spread is None or place < spread.begins):
                found.append((call.args[place], caller))
            elif spread is not None:
                further.append(self._handed_on(spread, caller, key, place))
        return [asked for asked in further if asked is not None]

    def _by_keyword(
        self, scope: Scope, edges: list[Edge], key: str, place: int, found: list[tuple[Value, Scope]]
    ) -> list[_Asked]:
        """The same by a keyword alone: most calls neither name it nor hand anything on, and are not looked at."""
        given = self._given.get(scope)
        if given is None or given.edges != len(edges):
            given = self._given[scope] = self._given_to(edges)
        named, spreading = given.by_keyword.get(key, _NONE), given.spreading
        if not named:
            # A thousand functions may hand on their `**options` to one that makes what they name.
            known = self._graph.incoming
            return [(caller, key, _FAR) for caller, own in given.handing if key not in own and caller in known]
        further: list[_Asked | None] = []
        for number in sorted({*named, *spreading}):
            caller, value = edges[number].caller, named.get(number)
            if value is not None:
                found.append((value, caller))
            elif number in spreading:
                further.append(self._handed_on(spreading[number], caller, key, place))
        return [asked for asked in further if asked is not None]


def place_of_rest(call: CallFacts, caller: FunctionFacts) -> int:
    """Where among its arguments a call hands on the `*args` of its own function; far behind them where it does not."""
    if not call.keywords or not any(key == SPREAD for key, _ in call.keywords):
        return _FAR
    rest = {param.name for param in caller.params if param.name.startswith("*")}
    return next((place for place, value in enumerate(call.args) if f"*{value}" in rest), _FAR)


def places(facts: FunctionFacts) -> dict[str, int]:
    """The positions of a function's parameters among the arguments of a call."""
    names = [param.name for param in facts.params if not param.name.startswith(("=", "*"))]
    if facts.in_class and names and "staticmethod" not in facts.decorators:
        names = names[1:]
    return {name: place for place, name in enumerate(names)}
