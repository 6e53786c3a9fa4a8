"""Generators that feed hot loops: what they do for each thing that they yield runs in the turn that takes it."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.analysis.frequency.epochs import EPOCH, LoopHeat, Loops
from perflint.analysis.names.refs import CLASS, FUNCTION, INSTANCE, Ref, Scope, given
from perflint.analysis.names.resolver import Resolver
from perflint.finding import Confidence, Heat
from perflint.ir.callees import last_name
from perflint.ir.summary import CallFacts, Value

#: Roles of the loops whose turns are steps over what a generator gives.
_FED = frozenset({"train", "batches"})
#: How deep a generator is looked for behind names, wrappers and functions that hand it on.
_DEEPEST = 7
_WRAPPERS = frozenset("enumerate tqdm trange track progress progress_bar iter zip islice cycle chain".split())


def mark_generators(loops: Loops, resolver: Resolver) -> None:
    """Add the loops of generators that hot loops go through, and of those that they take from in turn."""
    feeding = Feeding(resolver)
    waiting = [key for key, loop in loops.items() if loop.heat >= Heat.STEP and loop.role in _FED]
    seen: set[Scope] = set()
    taken: dict[Scope, list[CallFacts]] = {}
    while waiting:
        scope, index = waiting.pop()
        facts = resolver.summaries[scope.path].functions[scope.function]
        # `for batch in stream`, and `next(stream)` in it.
        if scope not in taken:
            taken[scope] = [call for call in facts.calls if call.func == "next" and call.args]
        inside = [call.args[0] for call in taken[scope] if index in facts.loops_around(call.context)]
        for value in (facts.loops[index].iterable, *inside):
            for source in feeding.sources(value, scope):
                if source not in seen:
                    seen.add(source)
                    waiting += feeding.mark(source, loops, seen)


def called_in(iterable: Value) -> str:
    """The last name of the call that a loop goes through, behind `enumerate` and its kin; "" where there is none."""
    while isinstance(iterable, tuple) and iterable[0] == "call":
        name = last_name(iterable[1])
        passed = given(iterable) if name in _WRAPPERS and isinstance(iterable[1], str) else ()
        if not passed:
            return name
        iterable = passed[0]
    return ""


class Feeding:
    """The generators that loops go through."""

    def __init__(self, resolver: Resolver) -> None:
        self.resolver = resolver
        #: While one question is answered: the functions that were looked into for it.
        self._tried: set[Scope] = set()

    def sources(self, value: Value, scope: Scope) -> list[Scope]:
        """The generators of the project that going through a value runs."""
        self._tried.clear()
        return list(self._behind(value, scope, _DEEPEST))

    def mark(self, source: Scope, loops: Loops, seen: set[Scope]) -> list[tuple[Scope, int]]:
        """Mark the loops in which a generator yields. Those whose sources are to be looked at are returned."""
        facts = self.resolver.facts(source)
        marked = []
        for value, context in facts.yields:
            if isinstance(value, tuple) and value[0] == "each" and value[1] is None:
                for inner in self.sources(value[2], source):  # `yield from self.parts()`, which goes through all of it
                    if inner not in seen:
                        seen.add(inner)
                        marked += self.mark(inner, loops, seen)
                continue
            index = facts.innermost_loop(context)
            if index is not None and (source, index) not in loops:
                loops[source, index] = LoopHeat(Heat.STEP, "batches", Confidence.MEDIUM)
                marked.append((source, index))
            if index is not None and self.sources(facts.loops[index].iterable, source):
                self._mark_parts(source, index, loops)
        return marked

    def _mark_parts(self, source: Scope, index: int, loops: Loops) -> None:
        """Mark the loops around one that yields all that another generator gives: a turn of theirs takes the next file
        of many batches, say, and is a pass, no step.
        """
        facts = self.resolver.facts(source)
        for outer in facts.loops_around(facts.loops[index].context):
            known = loops.get((source, outer))
            if known is not None and known.role == "batches":
                loops[source, outer] = EPOCH

    def _behind(self, value: Value, scope: Scope, depth: int) -> Iterator[Scope]:
        if depth <= 0:
            return
        if isinstance(value, str):
            refs = self.resolver.refs(value, scope)
            for ref in refs:
                yield from self._iterated(ref, depth)
            if not refs:
                definitions = self.resolver.written.definitions(value, scope)
                if not definitions and self.resolver.param_values is not None and "." not in value:
                    definitions = self.resolver.param_values(scope, value)
                for inner, where in definitions:
                    yield from self._behind(inner, where, depth - 1)
        elif isinstance(value, tuple) and value[0] == "call":
            name = value[1] if isinstance(value[1], str) else ""
            if name.rpartition(".")[2] in _WRAPPERS:
                for passed in given(value):
                    yield from self._behind(passed, scope, depth - 1)
                return
            for ref in self.resolver.refs(value[1], scope):
                if ref.kind == CLASS:
                    yield from self._iterated(Ref(INSTANCE, ref.path, ref.name), depth)
                elif ref.kind == FUNCTION:
                    yield from self._called(Scope(ref.path, ref.name), depth)

    def _called(self, callee: Scope, depth: int) -> Iterator[Scope]:
        if callee in self._tried:
            return
        self._tried.add(callee)
        facts = self.resolver.facts(callee)
        if facts.is_generator:
            yield callee
            return
        for value in facts.returns:
            yield from self._behind(value, callee, depth - 1)

    def _iterated(self, ref: Ref, depth: int) -> Iterator[Scope]:
        """What `for x in instance` runs."""
        found = self.resolver.method(ref, "__iter__") if ref.kind == INSTANCE else None
        if found is not None:
            yield from self._called(Scope(found.path, found.name), depth - 1)
