"""Loops that go through a generator of the project which a loop over batches goes through as well: a validation by the
method of a home-made loader that the training takes its batches from.
"""

from __future__ import annotations

from perflint.analysis.call_graph.generators import Feeding, called_in
from perflint.analysis.frequency.epochs import LoopHeat, Loops
from perflint.analysis.names.refs import Scope
from perflint.analysis.names.resolver import Resolver
from perflint.finding import Confidence, Heat

_TURNS = LoopHeat(Heat.STEP, "batches", Confidence.MEDIUM)


def mark_sharing(loops: Loops, resolver: Resolver) -> None:
    """Add the loops over what a function gives that a hot loop goes through too, wherever they stand."""
    feeding = Feeding(resolver)
    shared: dict[str, set[Scope]] = {}
    for (scope, index), heat in loops.items():
        iterable = resolver.summaries[scope.path].functions[scope.function].loops[index].iterable
        name = called_in(iterable) if heat.role in ("train", "batches") else ""
        if name:
            shared.setdefault(name, set()).update(feeding.sources(iterable, scope))
    for scope, facts in resolver.nesting.functions if any(shared.values()) else ():
        for index, loop in enumerate(facts.loops):
            giving = shared.get(called_in(loop.iterable)) if loop.kind == "for" else None
            if giving and (scope, index) not in loops and not giving.isdisjoint(feeding.sources(loop.iterable, scope)):
                loops[scope, index] = _TURNS
