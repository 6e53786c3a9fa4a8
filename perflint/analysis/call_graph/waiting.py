"""In which turn calls are connected that are not plain to see: what others ask about first, what others tell last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.call_graph.looked_up import is_in_namespace
from perflint.analysis.names.refs import Scope
from perflint.ir.summary import CallFacts, FunctionFacts, Value


class Turns(NamedTuple):
    """Calls by the places of function and call. Those of a plain name of a parameter and of what is looked up in a
    module, which make what others ask about; those of what a function is handed that nothing calls as far as is known
    by then, or of what it is handed in a container; and the others, which go between.
    """

    by_name: list[tuple[int, int]]
    others: list[tuple[int, int]]
    later: list[tuple[int, int]]


def in_turn(
    waiting: list[tuple[int, int]],
    functions: list[tuple[Scope, FunctionFacts]],
    incoming: Mapping[Scope, list[Edge]],
) -> Turns:
    """The calls that wait. `incoming` holds those that are connected already."""
    found = Turns([], [], [])
    for item in waiting:
        scope, facts = functions[item[0]]
        call = facts.calls[item[1]]
        func = call.func
        if type(func) is tuple:
            is_first = func[0] == "item" and is_in_namespace(func)
            (found.by_name if is_first else found.others).append(item)
        elif _is_element(func, facts) if func in facts.binds else not incoming.get(scope) and _is_handed(func, facts):
            found.later.append(item)
        else:
            (found.by_name if _is_of_name(call, facts) else found.others).append(item)
    return found


def _is_of_name(call: CallFacts, facts: FunctionFacts) -> bool:
    """Whether a call makes something by the name of a parameter, and hands it something."""
    if type(call.func) is not str or "." in call.func or not (call.args or call.keywords):
        return False
    return any(param.name.lstrip("=") == call.func for param in facts.params)


def _is_handed(func: Value, facts: FunctionFacts) -> bool:
    """Whether a call is of a parameter that nothing is told of where it stands, or of a method of one."""
    name = func.partition(".")[0] if type(func) is str else ""
    if not name or name in facts.binds:
        return False
    own = facts.params[1:] if facts.in_class else facts.params
    return any(param.name.lstrip("=") == name and param.default is None and not param.annotation for param in own)


def _is_element(func: Value, facts: FunctionFacts) -> bool:
    """Whether a call is of an element of a parameter, which a loop goes over."""
    values = facts.binds.get(func, ()) if type(func) is str and "." not in func else ()
    containers = [_container(value) for value in values if type(value) is tuple and value[0] == "item"]
    return bool(containers) and any(param.name.lstrip("=*") in containers for param in facts.params)


def _container(value: Value) -> str:
    """The name of the container that an element is of: `functions` of `for name, function in functions.items()`."""
    while type(value) is tuple and value[0] in ("item", "call"):
        value = value[1] if value[0] == "item" or not value[2] else value[2][0]
    return value.partition(".")[0] if type(value) is str else ""
