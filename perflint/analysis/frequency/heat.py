"""Heat flows from its roots down the call graph. It only rises, so cycles settle; what is hot keeps its route."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.call_graph.callbacks import FunctionRoot
from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.frequency.grad_switches import grad_switch, is_run_where_handed, is_switched_off
from perflint.analysis.frequency.pairs import Pairs
from perflint.analysis.frequency.roots import RootFinder
from perflint.analysis.names.declared import is_cached, kept_by
from perflint.analysis.names.refs import CLASS, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.finding import Confidence, Heat
from perflint.ir import guards
from perflint.ir.summary import MODULE, FunctionFacts


class Reason(NamedTuple):
    """Why a function is as hot as it is: the call that runs it, or the framework that does.

    `base` is how hot the caller itself was when that was found: a loop may make its own function hot later on, by
    calling back into it, and the route must not run in that circle.
    """

    heat: Heat
    confidence: Confidence
    edge: Edge | None
    root: FunctionRoot | None
    base: Heat = Heat.ONCE


_LAST_RESORT = 100
_DATA = "data"
_TRAIN = "train"
#: Phases, in the order in which ways are preferred.
_TRAINS, _OTHER, _REPEATS = 0, 1, 2
#: What is settled after what runs on every step elsewhere, and before what is rarer.
_DATA_RANK = 1
COLD = Reason(Heat.ONCE, Confidence.HIGH, None, None)


def _distance(edge: Edge) -> int:
    """How many folders lie between a call and what it may run."""
    if edge.caller.path == edge.callee.path:
        return 0
    one, other = edge.caller.path.split("/")[:-1], edge.callee.path.split("/")[:-1]
    shared = 0
    for part, counterpart in zip(one, other, strict=False):
        if part != counterpart:
            break
        shared += 1
    return len(one) + len(other) - 2 * shared


def _rank(heat: Heat, *, in_data: bool) -> int:
    if in_data:
        return _DATA_RANK
    return 0 if heat >= Heat.STEP else _DATA_RANK + 1


class HeatMap:
    """The heat of every function, and of every context inside it."""

    def __init__(
        self,
        resolver: Resolver,
        graph: CallGraph,
        roots: RootFinder,
        configured: Callable[[], frozenset[str]] = frozenset,
        thinned: frozenset[tuple[Scope, int]] = frozenset(),
    ) -> None:
        self.resolver = resolver
        self.graph = graph
        self.roots = roots
        self._thinned = thinned
        self.pairs = Pairs(resolver, lambda scope: graph.outgoing.get(scope, []), configured)
        self.reasons: dict[Scope, Reason] = {}
        self._no_grad: dict[Scope, bool] = {}
        self._contexts: dict[tuple[Scope, Heat], list[Heat]] = {}
        self.cached = {scope for scope, facts in resolver.nesting.functions if facts.decorators and is_cached(facts)}
        self.cached |= set(self._kept_by_assignment())
        #: Constructors of modules.
        self.making = {
            scope
            for scope, facts in resolver.nesting.by_name.get("__init__", ())
            if self._makes_module(scope.path, facts)
        }

    def _kept_by_assignment(self) -> Iterator[Scope]:
        """Functions that are replaced by themselves behind a cache: `self.f = lru_cache(100)(self.f)`, `f = cache(f)`,
        `Table.row = cache(Table.row)`.
        """
        for path, summary in self.resolver.summaries.items():
            for qualname, cls in summary.classes.items():
                for name, values in cls.attributes.items():
                    if any(kept_by(value, f"self.{name}") or kept_by(value, name) for value, _ in values):
                        yield from self._named(path, f"{qualname}.{name}")
            for name, held in summary.functions[MODULE].binds.items():
                if any(kept_by(value, name) for value in held):
                    yield from self._named(path, name)

    def _named(self, path: str, qualname: str) -> Iterator[Scope]:
        if qualname in self.resolver.summaries[path].functions:
            yield Scope(path, qualname)

    def _makes_module(self, path: str, facts: FunctionFacts) -> bool:
        """Whether a constructor is a module's."""
        return bool(facts.in_class) and self.resolver.hierarchy.is_module(Ref(CLASS, path, facts.in_class))

    def _seems_to_make(self, edge: Edge, facts: FunctionFacts) -> bool:
        """Whether a call seems to make a module, and nothing says that it does: hot code runs modules. It stands for
        another way, as a default or an option that holds the class, but for one that calls the class by its own name,
        `Blur(size)(image)`, and what that constructor calls.
        """
        if edge.caller in self.making:
            return False
        func = facts.calls[edge.index].func if edge.index >= 0 else None
        if not isinstance(func, str) or edge.confidence is not Confidence.HIGH:
            return True
        first = func.partition(".")[0]
        if first in facts.binds or any(param.name.lstrip("=*") == first for param in facts.params):
            return True
        return all(ref.kind != CLASS for ref in self.resolver.refs(func, Scope(edge.caller.path, MODULE)))

    def flow(self) -> None:
        """Settle functions from the hottest down: each is reached first by its hottest, surest, shortest way.

        Of ways that are as hot and sure, one that trains goes first: it costs more than an evaluation. What the
        training loop and the data side share is the loop's: there the device waits for it. Where a call may run one of
        many, and many calls may, as with what a registry holds, a pair that a configuration names is the likeliest, and
        then the nearest by folder.
        """
        queue: list[tuple[int, int, int, bool, int, int, int, int, Scope, Reason]] = []
        serial = 0
        for scope, root in self.roots.functions.items():
            if scope.path in self.resolver.tests:
                continue
            serial += 1
            # That a module's users call its forward is only said where no call of the project shows it.
            steps = _LAST_RESORT if root.last_resort or root.by_name else 0
            reason = Reason(self._of_call(scope, root.heat), root.confidence, None, root)
            rank = _rank(reason.heat, in_data=root.role == _DATA)
            phase = _TRAINS if root.role == _TRAIN else _OTHER
            heapq.heappush(queue, (rank, -reason.heat, -root.confidence, False, phase, steps, 0, serial, scope, reason))
        for scope, facts in self.resolver.nesting.functions:
            if facts.loops:
                for edge, heat, confidence in self._hot_edges(scope, facts, COLD):
                    serial += 1
                    made = Reason(heat, confidence, edge, None)
                    rank = _rank(heat, in_data=False)
                    phase = self._phase(scope, facts, edge.context, _OTHER)
                    odd = self.pairs.is_unlikely(edge)
                    item = (rank, -heat, -confidence, odd, phase, 1, _distance(edge), serial, edge.callee, made)
                    heapq.heappush(queue, item)
        while queue:
            rank, _, _, _, phase, steps, _, _, scope, reason = heapq.heappop(queue)
            if scope in self.reasons:
                continue
            self.reasons[scope] = reason
            facts = self.resolver.summaries[scope.path].functions[scope.function]
            for edge, heat, confidence in self._hot_edges(scope, facts, reason):
                if edge.callee not in self.reasons:
                    serial += 1
                    made = Reason(heat, confidence, edge, None, reason.heat)
                    rank_of_callee = _rank(heat, in_data=rank == _DATA_RANK)
                    inner = self._phase(scope, facts, edge.context, phase)
                    how = self.pairs.is_unlikely(edge), inner, steps + 1, _distance(edge)
                    item = (rank_of_callee, -heat, -confidence, *how, serial, edge.callee, made)
                    heapq.heappush(queue, item)
        self._settle_no_grad()

    def reason(self, scope: Scope) -> Reason:
        return self.reasons.get(scope, COLD)

    def _hot_edges(self, scope: Scope, facts: FunctionFacts, reason: Reason) -> list[tuple[Edge, Heat, Confidence]]:
        edges = self.graph.outgoing.get(scope)
        if not edges:
            return []
        heats = self.contexts(scope, facts, reason.heat)
        unused, tests = self.roots.unused, self.resolver.tests
        found = []
        for edge in edges:
            # What stands in for a method in a test is no part of training either.
            callee = edge.callee
            if callee in self.cached or (callee in self.making and self._seems_to_make(edge, facts)):
                continue
            if callee.path in tests or (callee in unused and self._is_another(edge, edges)):
                continue
            heat = self._of_call(callee, heats[edge.context] if edge.context >= 0 else reason.heat)
            if heat > Heat.ONCE:
                confidence = min(reason.confidence, edge.confidence, self._loop_confidence(scope, facts, edge.context))
                found.append((edge, heat, confidence))
        return found

    def _of_call(self, callee: Scope, heat: Heat) -> Heat:
        """How hot a function is that is called at `heat`: a pass over all data takes as long as many steps."""
        return min(heat, Heat.EPOCH) if callee in self.roots.whole_passes else heat

    def _is_another(self, edge: Edge, edges: Sequence[Edge]) -> bool:
        """Whether a call that may run a function that nothing uses may also run one that something does: not one that
        it overrides, which an annotation may be all that uses.
        """
        return any(
            other.index == edge.index
            and other.callee not in self.roots.unused
            and other.callee.path not in self.resolver.tests
            and not self._overrides(edge.callee, other.callee)
            for other in edges
        )

    def _overrides(self, scope: Scope, other: Scope) -> bool:
        cls = self.resolver.nesting.enclosing_class(scope)
        base = self.resolver.nesting.enclosing_class(other)
        return bool(cls.name) and base in self.resolver.mro(cls)

    def _phase(self, scope: Scope, facts: FunctionFacts, context: int, around: int) -> int:
        """Whether a call is a part of training, by the innermost hot loop around it, or else by its function's own."""
        while context >= 0:
            item = facts.contexts[context]
            if item.kind == "loop":
                loop = self.roots.loops.get((scope, int(item.detail)))
                if loop is not None and loop.heat >= Heat.STEP:
                    if (scope, int(item.detail)) in self.roots.repeating.loops:
                        return _REPEATS
                    return _TRAINS if loop.role == _TRAIN else _OTHER
            context = item.parent
        return around

    def _loop_confidence(self, scope: Scope, facts: FunctionFacts, context: int) -> Confidence:
        while context >= 0:
            item = facts.contexts[context]
            if item.kind == "loop":
                loop = self.roots.loops.get((scope, int(item.detail)))
                if loop is not None and loop.heat >= Heat.STEP:
                    return loop.confidence
            context = item.parent
        return Confidence.HIGH

    def contexts(self, scope: Scope, facts: FunctionFacts, base: Heat) -> list[Heat]:
        """The heat of each context of a function that runs at `base`. Not to be changed."""
        known = self._contexts.get((scope, base))
        if known is None:
            known = self._contexts[scope, base] = self._contexts_of(scope, facts, base)
        return known

    def _contexts_of(self, scope: Scope, facts: FunctionFacts, base: Heat) -> list[Heat]:
        heats: list[Heat] = []
        for place, context in enumerate(facts.contexts):
            outer = heats[context.parent] if context.parent >= 0 else base
            if (scope, place) in self.roots.repeating.periods:
                heats.append(outer)
            elif context.kind == "loop":
                loop = self.roots.loops.get((scope, int(context.detail)))
                if loop is not None and not self._is_part_of_rare(scope, facts, place, heats, loop.heat):
                    heats.append(max(outer, loop.heat))
                else:
                    heats.append(outer)
            elif context.detail in (guards.LEAVES, guards.TURN):
                heats.append(min(outer, max(_outside_loop(facts, context.parent, heats, base), Heat.EPOCH)))
            elif context.kind == "switch":
                begins = heats[int(context.detail)] if int(context.detail) >= 0 else base
                heats.append(min(outer, max(begins, Heat.PERIODIC)))
            elif (scope, place) in self._thinned:
                heats.append(min(outer, max(_outside_loop(facts, context.parent, heats, base), Heat.PERIODIC)))
            elif context.kind == "guard":
                heats.append(cooled(outer, str(context.detail)))
            else:
                heats.append(outer)
        return heats

    def _is_part_of_rare(self, scope: Scope, facts: FunctionFacts, place: int, heats: list[Heat], heat: Heat) -> bool:
        """Whether a loop over parts of a step, or over a handful of batches, stands under a guard that makes it rarer
        than the loop over steps.
        """
        context = facts.contexts[place].parent
        is_gathered = (scope, int(facts.contexts[place].detail)) in self.roots.gathered
        if (heat != Heat.MICROBATCH and not is_gathered) or context < 0:
            return False
        around = heats[context]
        while context >= 0 and facts.contexts[context].kind != "loop":
            context = facts.contexts[context].parent
        return context >= 0 and around < Heat.STEP <= heats[context]

    # Gradients.

    def without_grad(self, scope: Scope) -> bool:
        """Whether every known way into a function runs with gradients off."""
        return self._no_grad.get(scope, False)

    def _settle_no_grad(self) -> None:
        """Assume it of every function that is called, then take it back from those with a way in that has gradients."""
        functions = self.resolver.nesting.functions
        incoming = self.graph.incoming
        state = {scope: scope in incoming for scope, _ in functions}
        fixed: set[Scope] = set()
        for scope, root in self.roots.functions.items():
            if not root.by_name:
                state[scope] = root.role == "eval"
                fixed.add(scope)
            # Who calls what only its name tells of, is asked; a framework nobody sees evaluates without.
            elif root.role == "infer":
                state[scope] = True
        for scope, facts in functions:
            if facts.decorators and is_switched_off(scope, facts, self.resolver):
                state[scope] = True
                fixed.add(scope)
        waiting = [scope for scope, off in state.items() if not off]
        while waiting:
            caller = waiting.pop()
            facts = self.resolver.summaries[caller.path].functions[caller.function]
            for edge in self.graph.outgoing.get(caller, ()):
                callee = edge.callee
                if not state[callee] or callee in fixed or is_run_where_handed(edge, self.graph):
                    continue
                if grad_switch(facts, edge.context) != "no_grad":
                    state[callee] = False
                    waiting.append(callee)
        self._no_grad = state


def cooled(heat: Heat, guard: str) -> Heat:
    """The heat of code under a guard inside code of `heat`."""
    if guard in (guards.PERIODIC, guards.EVALUATION):
        return min(heat, Heat.PERIODIC)
    if guard == guards.ACCUMULATION:
        return min(heat, Heat.STEP)
    if guard == guards.FIRST:
        return min(heat, Heat.EPOCH)
    return Heat.ONCE


def _outside_loop(facts: FunctionFacts, context: int, heats: list[Heat], base: Heat) -> Heat:
    """The heat around the innermost loop that holds `context`."""
    while context >= 0:
        item = facts.contexts[context]
        context = item.parent
        if item.kind == "loop":
            break
    return heats[context] if context >= 0 else base
