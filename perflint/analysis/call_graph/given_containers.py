"""Calls of what a function is given, or of what a container that it is given holds: `for f in functions: x = f(x)`.

What such a container holds is known once the function's own calls are connected, which may be in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perflint.analysis.names.held import called_on
from perflint.analysis.names.refs import Scope
from perflint.ir.summary import CallFacts, FunctionFacts, Value

_DEPTH = 6


def is_of_name(call: CallFacts, facts: FunctionFacts) -> bool:
    """Whether a call makes something by the name of a parameter, and hands it something."""
    if type(call.func) is not str or "." in call.func or not (call.args or call.keywords):
        return False
    return any(param.name.lstrip("=") == call.func for param in facts.params)


class Given:
    """Of the calls that wait to be connected, by the places of function and call, those of such elements."""

    def __init__(
        self,
        waiting: Sequence[tuple[int, int]],
        functions: Sequence[tuple[Scope, FunctionFacts]],
        incoming: Mapping[Scope, Sequence[object]],
    ) -> None:
        self._functions = functions
        self._incoming = incoming
        found = [item for item in waiting if _is_of_given(functions[item[0]][1], item[1])]
        self._before = {item: self._callers(item) for item in found}

    def _callers(self, item: tuple[int, int]) -> int:
        return len(self._incoming.get(self._functions[item[0]][0], ()))

    def late(self, unresolved: dict[Scope, list[CallFacts]]) -> list[tuple[int, int]]:
        """Those that were asked before callers of theirs were connected: they are taken out of the unresolved."""
        found = []
        for item, before in self._before.items():
            scope, facts = self._functions[item[0]]
            call, left = facts.calls[item[1]], unresolved.get(scope, ())
            if self._callers(item) > before and any(other is call for other in left):
                unresolved[scope] = [other for other in left if other is not call]
                found.append(item)
        return found


def _is_of_given(facts: FunctionFacts, place: int) -> bool:
    func = facts.calls[place].func
    given = {param.name.lstrip("=*") for param in facts.params}
    values = facts.binds.get(func, ()) if type(func) is str else (func,)
    return any(_root(value, facts) in given for value in values if type(value) is tuple and value[0] == "item")


def _root(value: Value, facts: FunctionFacts) -> str:
    """The name of the container that an element is of."""
    for _ in range(_DEPTH):
        if type(value) is str:
            made = facts.binds.get(value, ())
            if len(made) != 1:
                return value
            value = made[0]
        elif type(value) is tuple and value[0] == "item":
            value = value[1]
        elif type(value) is tuple and value[0] == "call":
            base, _ = called_on(value[1])
            value = base if base is not None and not value[2] else value[2][0] if value[2] else None
        else:
            break
    return ""
