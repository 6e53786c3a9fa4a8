"""Loops that run once per pass over the data: those around hot loops, directly or through the functions they call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.evidence import makes_trained
from perflint.analysis.names.refs import CLASS, EXTERNAL_INSTANCE, INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.finding import Confidence, Heat
from perflint.ir.callees import last_name
from perflint.ir.summary import FunctionFacts, Value
from perflint.torch_model import modules


class LoopHeat(NamedTuple):
    """What a loop's body is at least: its heat, and what it is for ("train", "batches", "driver", "decode", "texts",
    "epoch")."""

    heat: Heat
    role: str
    confidence: Confidence


Loops: TypeAlias = "dict[tuple[Scope, int], LoopHeat]"
#: What gives the model that it is called on or given.
_HANDING = frozenset("to cuda cpu eval train deepcopy DataParallel DistributedDataParallel compile prepare".split())
EPOCH = LoopHeat(Heat.EPOCH, "epoch", Confidence.HIGH)


def mark_epochs(
    loops: Loops,
    runs: set[tuple[Scope, int]],
    steps: set[tuple[Scope, int]],
    counted: set[tuple[Scope, int]],
    refining: set[tuple[Scope, int]],
    graph: CallGraph,
    resolver: Resolver,
) -> None:
    """Add the loops around hot ones, and change those that only look like steps: of the `steps`, which go through no
    batches themselves, a turn in which one of the `runs` trains on all batches of a loader is a pass, and so is one
    that plays whole episodes before it trains on them, and one that counts epochs, where functions that are called in
    it have loops that train. The `counted` take the next batch in each turn, from what need not end with a pass. Those
    `refining` inputs are a part of whatever runs them: no training, and what is around them is no epoch for that.
    """
    around = _Around(graph, resolver)
    passes = steps.intersection(around.loops({*runs, *_collecting(resolver)}, guarded=False))
    counting = {key for key in steps if _counts_epochs(key, resolver)}
    if counting:
        own = {scope for scope, _ in counting}
        training = (key for key, heat in loops.items() if heat.role == "train" and key[0] not in own)
        passes |= counting.intersection(around.loops(training))
    hot = [key for key, heat in loops.items() if heat.role in ("train", "batches") and key not in refining]
    found, experiments = around.passes(hot, steps | counted)
    for key in experiments:
        if key in loops and loops[key].heat is Heat.EPOCH:
            del loops[key]
    for key in found:
        loops.setdefault(key, EPOCH)
    loops.update(dict.fromkeys(passes, EPOCH))


def _collecting(resolver: Resolver) -> Iterator[tuple[Scope, int]]:
    """Loops that play an episode on each turn, until there are enough: `seen, reward, done, _ = env.step(action)` in a
    loop of theirs. A turn of one that takes a few such steps, and trains, is a step.
    """
    for scope, facts in resolver.nesting.functions:
        if len(facts.loops) < 2:
            continue
        played = {value[1][1] for values in facts.binds.values() for value in values if _is_of_environment(value)}
        for call in facts.calls if played else ():
            around = facts.loops_around(call.context) if call.func in played else ()
            if len(around) > 1:
                yield scope, around[1]


def _is_of_environment(value: Value) -> bool:
    """The fourth of what a call of `step` gives."""
    if not (isinstance(value, tuple) and value[0] == "item" and value[2] == 3):
        return False
    call = value[1]
    return isinstance(call, tuple) and call[0] == "call" and last_name(call[1]) == "step"


def _counts_epochs(key: tuple[Scope, int], resolver: Resolver) -> bool:
    """`for epoch in range(epochs)`."""
    scope, index = key
    loop = resolver.summaries[scope.path].functions[scope.function].loops[index]
    return loop.kind == "for" and loop.targets == ("epoch",)


def _made(value: Value) -> Value:
    """`Net()` of `Net().to(device)`; None for what calls nothing, or hands on what it is given."""
    while isinstance(value, tuple) and value[0] == "call":
        func = value[1]
        if last_name(func) not in _HANDING:
            return value
        value = func[1] if isinstance(func, tuple) and func[0] == "attr" else None
    return None


class _Around:
    def __init__(self, graph: CallGraph, resolver: Resolver) -> None:
        self.graph = graph
        self.resolver = resolver
        self._made: dict[Scope, set[int]] = {}

    def loops(self, inner: Iterable[tuple[Scope, int]], *, guarded: bool = True) -> list[tuple[Scope, int]]:
        """The loops around those given; without `guarded` only those in whose every turn an inner one surely runs."""
        found: list[tuple[Scope, int]] = []
        holders: set[Scope] = set()
        waiting: list[Scope] = []
        for scope, index in inner:
            facts = self.resolver.facts(scope)
            found += ((scope, outer) for outer in _outer(facts, facts.loops[index].context, guarded=guarded))
            if scope not in holders and (guarded or not _is_guarded(facts, facts.loops[index].context)):
                holders.add(scope)
                waiting.append(scope)
        while waiting:
            for edge in self._callers(waiting.pop()):
                facts = self.resolver.facts(edge.caller)
                found += ((edge.caller, outer) for outer in _outer(facts, edge.context, guarded=guarded))
                if edge.caller not in holders and (guarded or not _is_guarded(facts, edge.context)):
                    holders.add(edge.caller)
                    waiting.append(edge.caller)
        return found

    def passes(
        self, inner: list[tuple[Scope, int]], counted: set[tuple[Scope, int]]
    ) -> tuple[list[tuple[Scope, int]], set[tuple[Scope, int]]]:
        """The loops around those given, of which a turn may be a pass, and those of experiments, of which each runs
        once: they make what they train on each turn, and have a loop of passes or one of the `counted` inside.
        """
        starts = [
            (scope, self.resolver.facts(scope).loops[index].context, (scope, index) in counted)
            for scope, index in inner
        ]
        experiments: set[tuple[Scope, int]] = set()
        whole: set[Scope] = set()
        # Whatever else an experiment goes through, as a test at its end, is a part of it.
        self._climb(starts, experiments, whole)
        for scope in whole:
            for edge in self._callers(scope):
                experiments.update(
                    (edge.caller, loop) for loop in self.resolver.facts(edge.caller).loops_around(edge.context)
                )
        return self._climb(starts, experiments, whole), experiments

    def _climb(
        self, starts: list[tuple[Scope, int, bool]], experiments: set[tuple[Scope, int]], whole: set[Scope]
    ) -> list[tuple[Scope, int]]:
        """The loops around some contexts, up to `experiments`, and functions that are `whole` ones: both grow."""
        found: list[tuple[Scope, int]] = []
        seen: set[tuple[Scope, bool]] = set()
        waiting = list(starts)
        while waiting:
            scope, context, has_passes = waiting.pop()
            facts = self.resolver.facts(scope)
            making = self._making(scope)
            for loop in facts.loops_around(context):
                if loop in making and has_passes:
                    experiments.add((scope, loop))
                if (scope, loop) in experiments:
                    break
                found.append((scope, loop))
                has_passes = True
            else:
                if has_passes and making:
                    whole.add(scope)
                if scope not in whole and (scope, has_passes) not in seen:
                    seen.add((scope, has_passes))
                    waiting += ((edge.caller, edge.context, has_passes) for edge in self._callers(scope))
        return found

    def _making(self, scope: Scope) -> set[int]:
        """The loops in which a function makes the optimizer of a model that it makes as well, -1 for its own body; not
        of one that it is given, as a client is in each round of a federated training.
        """
        if scope not in self._made:
            facts = self.resolver.facts(scope)
            found = [{-1, *facts.loops_around(call.context)} for call in facts.calls if makes_trained(call)]
            makes = bool(found) and self._makes_model(scope, facts)
            self._made[scope] = set().union(*found) if makes else set()
        return self._made[scope]

    def _makes_model(self, scope: Scope, facts: FunctionFacts) -> bool:
        return any(
            modules.makes_module(ref.name)
            if ref.kind == EXTERNAL_INSTANCE
            else ref.kind == INSTANCE and self.resolver.hierarchy.is_module(Ref(CLASS, ref.path, ref.name))
            for values in facts.binds.values()
            for value in map(_made, values)
            if value is not None
            for ref in self.resolver.refs(value, scope)
        )

    def _callers(self, callee: Scope) -> Iterator[Edge]:
        return (edge for edge in self.graph.incoming.get(callee, ()) if edge.confidence == Confidence.HIGH)


def _outer(facts: FunctionFacts, context: int, *, guarded: bool) -> Iterator[int]:
    """The loops around a context; without `guarded` up to the first guard."""
    while context >= 0:
        item = facts.contexts[context]
        if item.kind == "loop":
            yield int(item.detail)
        elif item.kind == "guard" and not guarded:
            return
        context = item.parent


def _is_guarded(facts: FunctionFacts, context: int) -> bool:
    while context >= 0:
        if facts.contexts[context].kind == "guard":
            return True
        context = facts.contexts[context].parent
    return False
