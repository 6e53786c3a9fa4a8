"""Ways from a root of heat to a line: the chains of calls by which it runs as often as it is said to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from perflint.analysis.call_graph.callbacks import FunctionRoot
from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.feasibility.only_evaluated import OnlyEvaluated
from perflint.analysis.feasibility.worlds import World
from perflint.analysis.frequency.grad_switches import grad_switch
from perflint.analysis.frequency.heat import HeatMap
from perflint.analysis.frequency.routes import decisive_loop, display_name, hot_loop_around
from perflint.analysis.names.refs import Scope
from perflint.finding import Confidence, Heat, Hop
from perflint.ir.callees import last_name
from perflint.ir.summary import CallFacts, FunctionFacts

#: The calls of a way, that of the last function first.
Calls: TypeAlias = "tuple[Edge, ...]"
#: Whether a run may come by these calls.
Opens: TypeAlias = "Callable[[Calls], bool]"
_MODES = {"train": World.TRAINING, "eval": World.EVALUATING}
_SWITCHES = frozenset({"eval", "train"})
_LONGEST = 40
#: How many calls are looked at for one line.
_MOST_CALLS = 400


class Way(NamedTuple):
    """Calls that lead to a function, its own first, and what makes the first caller hot: a loop of it, by its place, or
    who else calls it.
    """

    calls: Calls
    start: Scope
    loop: int | None
    root: FunctionRoot | None


class TooManyError(Exception):
    """There are more ways to some code than are looked at."""


class Ways:
    """The ways of one program."""

    def __init__(self, heat: HeatMap, callers: Callable[[Scope], list[Edge]], trains: Callable[[Scope], bool]) -> None:
        self._heat = heat
        self._callers = callers
        self._evaluated = OnlyEvaluated(heat, trains)
        #: By function, the lines and contexts of the calls that put modules into a mode, with the mode.
        self._switches: dict[Scope, list[tuple[int, str, int]]] = {}

    def printed(self, scope: Scope, context: int) -> Way:
        """The way that `route_to` prints."""
        calls: list[Edge] = []
        base = self._heat.reason(scope).heat
        for _ in range(_LONGEST):
            reason = self._heat.reason(scope)
            facts = self._facts(scope)
            heats = self._heat.contexts(scope, facts, base)
            loop = decisive_loop(self._heat, scope, facts, context, heats, base)
            if loop is not None or reason.root is not None or reason.edge is None:
                return Way(tuple(calls), scope, loop, reason.root if loop is None else None)
            calls.append(reason.edge)
            scope, context, base = reason.edge.caller, reason.edge.context, reason.base
        return Way(tuple(calls), scope, None, None)

    def first(
        self, scope: Scope, context: int, at_least: Heat, opens: Opens, ends: Callable[[Way], bool]
    ) -> Way | None:
        """The first way, calls that are surer and hotter first, by which code runs at least so often, all of whose
        beginnings are open, and which may end as it does. A way is found only once, if at all. Raises TooManyError
        where code has very many.
        """
        return next(filter(ends, self._from(scope, context, at_least, (), opens, [_MOST_CALLS])), None)

    def _from(
        self, scope: Scope, context: int, at_least: Heat, calls: Calls, opens: Opens, left: list[int]
    ) -> Iterator[Way]:
        if not opens(calls):
            return
        facts = self._facts(scope)
        alone = self._heat.contexts(scope, facts, Heat.ONCE)
        if context >= 0 and alone[context] >= at_least:
            yield Way(calls, scope, decisive_loop(self._heat, scope, facts, context, alone, Heat.ONCE), None)
            return
        if len(calls) >= _LONGEST or self._cools(scope, facts, context, at_least):
            return
        hot_calls = self._hot_calls(scope, at_least)
        for edge in hot_calls:
            left[0] -= 1
            if left[0] < 0:
                raise TooManyError
            if edge.caller != scope and all(edge.caller not in (call.caller, call.callee) for call in calls):
                yield from self._from(edge.caller, edge.context, at_least, (*calls, edge), opens, left)
        root = self._heat.roots.functions.get(scope)
        if root is not None and root.heat >= at_least and not (hot_calls and self._is_told_otherwise(root)):
            yield Way(calls, scope, None, root)

    def mode(self, way: Way) -> World:
        """What is known of the mode of the modules that run: what a framework trains or evaluates with, it puts into
        that mode before, and so does a loop over batches for which nothing but `eval()` is called.
        """
        forwards = (scope for scope in (way.start, *(edge.callee for edge in way.calls)) if _is_forward(scope))
        if (way.root is None or way.root.role == "forward") and any(map(self._evaluated.is_so, forwards)):
            return World.EVALUATING
        if way.root is not None:
            return _MODES.get(way.root.role, World.ANY)
        loop = self._heat.roots.loops.get((way.start, way.loop)) if way.loop is not None else None
        if loop is None or way.loop is None:
            return World.ANY
        facts = self._facts(way.start)
        switches = self._switches.get(way.start)
        if switches is None:
            found = [(call.line, _switched(call), call.context) for call in facts.calls if _switches(call)]
            switches = self._switches[way.start] = sorted(found)
        line = way.calls[-1].line if way.calls else facts.loops[way.loop].line
        modes = {mode for _, mode, _ in switches} or {""}
        if len(modes) > 1:
            modes = _modes_at(line, way.loop, facts, switches)
        trains = loop.role == "train" or (loop.role == "batches" and self._steps_inside(way, facts))
        if loop.role == "batches" and not trains:
            return World.EVALUATING if modes == {"eval"} else World.ANY
        # A teacher beside what is trained runs without gradients, in the mode that it has got elsewhere.
        is_teacher = bool(way.calls) and grad_switch(facts, way.calls[-1].context) == "no_grad"
        return World.TRAINING if trains and modes == {"train"} and not is_teacher else World.ANY

    def _steps_inside(self, way: Way, facts: FunctionFacts) -> bool:
        """Whether what a way begins with stands in a loop that takes steps, inside of the one that gives batches."""
        loops = facts.loops_around(way.calls[-1].context) if way.calls else ()
        known = (self._heat.roots.loops.get((way.start, loop)) for loop in loops)
        return any(loop is not None and loop.role == "train" for loop in known)

    def _is_told_otherwise(self, root: FunctionRoot) -> bool:
        """Whether calls that are seen say how a function is run, and not what its users may do: of a program without
        users of its own.
        """
        return root.last_resort and not self._heat.roots.library.is_library

    def _cools(self, scope: Scope, facts: FunctionFacts, context: int, at_least: Heat) -> bool:
        """Whether a context is rarer than that however often its function runs."""
        return context >= 0 and self._heat.contexts(scope, facts, max(Heat))[context] < at_least

    def _hot_calls(self, scope: Scope, at_least: Heat) -> list[Edge]:
        found: list[tuple[int, bool, int, Edge]] = []
        if scope in self._heat.cached:
            return []
        for edge in self._callers(scope):
            heat = self.heat_at(edge.caller, edge.context)
            if heat >= at_least:
                # As heat flows: what the data side shares with a loop over steps is the loop's.
                odd = self._heat.pairs.is_unlikely(edge)
                found.append((-edge.confidence, odd, -heat if heat < Heat.SAMPLE else 0, edge))
        found.sort(key=lambda item: item[:3])
        return [edge for _, _, _, edge in found]

    def heat_at(self, scope: Scope, context: int) -> Heat:
        base = self._heat.reason(scope).heat
        return self._heat.contexts(scope, self._facts(scope), base)[context] if context >= 0 else base

    def _facts(self, scope: Scope) -> FunctionFacts:
        return self._heat.resolver.summaries[scope.path].functions[scope.function]

    def hops(self, way: Way) -> tuple[tuple[Hop, ...], Confidence]:
        """A way as findings print it, and how sure every step of it is."""
        hops = [Hop(edge.caller.path, edge.line, display_name(edge.callee.function)) for edge in way.calls]
        confidence = min([edge.confidence for edge in way.calls], default=Confidence.HIGH)
        facts = self._facts(way.start)
        if way.loop is not None:
            confidence = min(confidence, self._heat.roots.loops[way.start, way.loop].confidence)
            around = hot_loop_around(self._heat, way.start, facts, way.loop)
            loops = [facts.loops[loop] for loop in (way.loop, around) if loop is not None]
            hops += [Hop(way.start.path, loop.line, loop.text) for loop in loops]
        elif way.root is not None:
            confidence = min(confidence, way.root.confidence)
            hops.append(Hop(way.start.path, facts.line, way.root.text))
        return tuple(reversed(hops)), confidence


def _is_forward(scope: Scope) -> bool:
    return scope.function.endswith(".forward")


def _switches(call: CallFacts) -> bool:
    return last_name(call.func) in _SWITCHES


def _modes_at(line: int, loop: int, facts: FunctionFacts, switches: list[tuple[int, str, int]]) -> set[str]:
    """The modes that modules may have at a line of a loop: that of the last switch before it in the loop; or, where
    there is none, of the last one in the iteration before and of the last one before the loop. They begin in training.
    """
    inside = [(at, mode) for at, mode, context in switches if loop in facts.loops_around(context)]
    before = [mode for at, mode in inside if at < line]
    if before:
        return {before[-1]}
    outside = [mode for at, mode, _ in switches if at < facts.loops[loop].line]
    return {outside[-1] if outside else "train", *(mode for _, mode in inside[-1:])}


def _switched(call: CallFacts) -> str:
    """The mode that a call puts a module into: `train` and `eval`, "" for what an argument says."""
    return last_name(call.func) if not call.args and not call.keywords else ""
