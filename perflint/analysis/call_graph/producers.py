"""Loops of threads and processes that fill a queue: one iteration for each item that another thread takes."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.analysis.frequency.epochs import LoopHeat, Loops
from perflint.analysis.names.refs import FUNCTION, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.finding import Confidence, Heat
from perflint.ir.callees import last_name
from perflint.ir.summary import FunctionFacts

_STARTERS = frozenset({"Thread", "Process"})
_PUTTING = frozenset({"put", "put_nowait", "send"})


def mark_producers(loops: Loops, resolver: Resolver) -> None:
    """Add the loops that put items on a queue, in functions that threads and processes run, where the program has a
    loop over batches that may take them.
    """
    if not any(loop.role in ("train", "batches") for loop in loops.values()):
        return
    for scope in _producers(resolver):
        facts = resolver.summaries[scope.path].functions[scope.function]
        for call in facts.calls:
            if last_name(call.func) in _PUTTING and call.args:
                around = facts.loops_around(call.context)
                if around and facts.loops[around[0]].kind != "comprehension":
                    loops.setdefault((scope, around[0]), LoopHeat(Heat.STEP, "data", Confidence.MEDIUM))


def _producers(resolver: Resolver) -> Iterator[Scope]:
    """What `Thread(target=fill)` runs, and the `run` of classes that derive from it."""
    for scope, facts in resolver.nesting.functions:
        if facts.name == "run" and facts.in_class and _is_thread(scope, facts, resolver):
            yield scope
        for call in facts.calls:
            if call.keywords and last_name(call.func) in _STARTERS:
                for key, value in call.keywords:
                    if key == "target":
                        refs = resolver.refs(value, scope)
                        yield from (Scope(ref.path, ref.name) for ref in refs if ref.kind == FUNCTION)


def _is_thread(scope: Scope, facts: FunctionFacts, resolver: Resolver) -> bool:
    bases = resolver.summaries[scope.path].classes[facts.in_class].bases
    return any(str(base).rpartition(".")[2] in _STARTERS for base in bases)
