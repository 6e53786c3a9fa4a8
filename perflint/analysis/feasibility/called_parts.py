"""Calls of parts of something that nobody can name: `module[0](x, sizes, targets)`, `for block in blocks: block(x)`."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.names.refs import Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import SPREAD, CallFacts, FunctionFacts, Value

_NOTHING: Value = ("const", "NoneType", None)


class PartCall(NamedTuple):
    """A call, with the function that it stands in."""

    caller: Scope
    call: CallFacts


class CalledParts:
    """The calls of one program that may run the `forward` of any object that its file knows the class of."""

    def __init__(self, resolver: Resolver, graph: CallGraph) -> None:
        self._resolver = resolver
        self._graph = graph

    def may_give(self, scope: Scope, facts: FunctionFacts, required: int, place: int, most: int) -> bool:
        """Whether one of them passes something at a place, and as many arguments as a method takes, in a file that
        names its class.
        """
        cls = facts.in_class.rpartition(".")[2]
        return any(
            max(required, place + 1) <= len(item.call.args) <= most
            and item.call.args[place] != _NOTHING
            and item.caller != scope
            and (item.caller.path == scope.path or cls in self._resolver.summaries[item.caller.path].imports)
            for item in self._calls
        )

    @cached_property
    def _calls(self) -> list[PartCall]:
        facts = self._resolver.nesting.function
        return [
            PartCall(scope, call)
            for scope, calls in self._graph.unresolved.items()
            if scope.path not in self._resolver.tests
            for call in calls
            if len(call.args) > 1 and not _spreads(call) and _is_of_part(call, facts(scope))
        ]


def _spreads(call: CallFacts) -> bool:
    return any(key in ("", SPREAD) for key, _ in call.keywords)


def _is_of_part(call: CallFacts, facts: FunctionFacts) -> bool:
    if type(call.func) is tuple:
        return bool(call.func[0] == "item")
    return type(call.func) is str and any(call.func in loop.targets for loop in facts.loops)
