"""What makers that nobody sees can pass to the constructors of a program: no keyword that is written nowhere, and no
more by place than each class takes that goes by the same name next to it, for one maker makes any of them.
"""

from __future__ import annotations

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.feasibility.options import Options
from perflint.analysis.feasibility.parameters import Passing, own_parameters, place_of
from perflint.analysis.names.refs import Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import FunctionFacts


class UnseenMakers:
    """The constructors of one program that no call of it is seen to run."""

    def __init__(self, resolver: Resolver, graph: CallGraph, options: Options, passing: Passing) -> None:
        self._resolver = resolver
        self._graph = graph
        self._options = options
        self._passing = passing
        self._keywords = resolver.nesting.keywords
        self._written: dict[str, bool] = {}
        self._most: dict[tuple[str, str], int | None] = {}

    def never_pass(self, scope: Scope, facts: FunctionFacts, name: str) -> bool:
        """Whether no maker can give a constructor this optional argument: its users are all in the program."""
        if facts.name != "__init__" or self._passing.is_open(scope) or self._is_written(name):
            return False
        place = place_of(facts, name)
        most = self._most_by_place(scope.path.rpartition("/")[0], facts.in_class.rpartition(".")[2])
        return place is None or (most is not None and place >= most)

    def _is_written(self, name: str) -> bool:
        """Whether a text, a configuration or a call of something that is not known may give an argument its name."""
        if name not in self._written:
            self._written[name] = (
                self._options.configured(name) is not None
                or any(f" {name} " in f" {summary.texts} " for summary in self._resolver.summaries.values())
                or any(self._is_unresolved(item.scope, item.place) for item, _ in self._keywords.get(name, ()))
            )
        return self._written[name]

    def _is_unresolved(self, scope: Scope, place: int) -> bool:
        return all(edge.index != place for edge in self._graph.outgoing.get(scope, ()))

    def _most_by_place(self, folder: str, name: str) -> int | None:
        """How many arguments by place each class takes that goes by a name in a folder and is made by nobody seen;
        None where it is one class only, whose makers may pass whatever it takes.
        """
        key = folder, name
        if key not in self._most:
            taken = [
                len([param for param in own_parameters(facts) if not param.name.startswith("=")])
                for scope, facts in self._resolver.nesting.by_name.get("__init__", ())
                if scope.path.rpartition("/")[0] == folder
                and facts.in_class.rpartition(".")[2] == name
                and not any(param.name.startswith("*") for param in facts.params)
                and not self._passing.callers(scope)
            ]
            self._most[key] = min(taken) if len(taken) > 1 else None
        return self._most[key]
