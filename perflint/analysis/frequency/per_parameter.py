"""Which functions a step runs for each parameter of a model: a loop over all of them stands around a call that leads
there, in whatever file. That is paid dozens of times, as a loop in the function itself would be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perflint.analysis.names.refs import Scope
from perflint.finding import Heat
from perflint.ir.callees import last_name
from perflint.ir.summary import Value
from perflint.torch_model.modules import PARAMETER_ITERATORS

if TYPE_CHECKING:
    from perflint.analysis.program import Program

_WRAPPERS = frozenset({"enumerate", "zip", "list", "tuple", "reversed", "filter", "chain"})
#: Under this key a group of an optimizer has its parameters.
_OF_GROUP = "params"


def runs_for_each_parameter(scope: Scope, program: Program) -> bool:
    """Along the calls that make a function hot: those of the route that is printed."""
    seen: set[Scope] = set()
    while scope not in seen:
        seen.add(scope)
        edge = program.hottest_call(scope)
        if edge is None or edge.index < 0 or edge.callback:
            return False
        facts = program.function(edge.caller)
        for index in facts.loops_around(edge.context):
            loop = facts.loops[index]
            if _is_walk(loop.iterable) and program.heat_at(edge.caller, loop.context) >= Heat.STEP:
                return True
        if program.heat(edge.caller) < Heat.STEP:
            return False
        scope = edge.caller
    return False


def _is_walk(rows: Value) -> bool:
    """`model.named_parameters()`, `group["params"]`, and pairs of them."""
    if not isinstance(rows, tuple):
        return False
    if rows[0] == "item":
        return bool(rows[2] == _OF_GROUP)
    if rows[0] != "call":
        return False
    name = last_name(rows[1])
    return (name in PARAMETER_ITERATORS and rows[1] != name) or (name in _WRAPPERS and any(map(_is_walk, rows[2])))
