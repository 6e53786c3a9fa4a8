"""Data sets that calls hand to functions which make a loader of the class that they are given, DataLoader by default:
`def loader(dataset, *args, klass=DataLoader, **kwargs): return klass(dataset, *args, **kwargs)`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.names.refs import Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import FunctionFacts, Value

_DATA_SET = "dataset"


def handed_to_factories(
    resolver: Resolver, graph: CallGraph, loaders: Collection[str]
) -> Iterator[tuple[Value, Scope]]:
    """The data sets in these calls, each with the function that makes the call. `loaders` are the last names of the
    classes.
    """
    for scope, facts in resolver.nesting.functions:
        place = _place_of_data_set(facts, loaders)
        if place is None:
            continue
        name = facts.params[place].name.lstrip("=")
        for edge in graph.incoming.get(scope, ()):
            if edge.callback or edge.index < 0:
                continue
            call = resolver.summaries[edge.caller.path].functions[edge.caller.function].calls[edge.index]
            given = call.args[place] if place < len(call.args) else dict(call.keywords).get(name)
            if given is not None:
                yield given, edge.caller


def _place_of_data_set(facts: FunctionFacts, loaders: Collection[str]) -> int | None:
    """Which parameter of a function is the data set of the loader that it makes; None for other functions."""
    if facts.in_class:
        return None
    classes = {
        param.name.lstrip("=")
        for param in facts.params
        if isinstance(param.default, str) and param.default.rpartition(".")[2] in loaders
    }
    if not classes:
        return None
    names = [param.name.lstrip("=") for param in facts.params]
    for call in facts.calls:
        if call.func in classes:
            given = call.args[0] if call.args else dict(call.keywords).get(_DATA_SET)
            if isinstance(given, str) and given in names:
                return names.index(given)
    return None
