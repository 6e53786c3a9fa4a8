"""The phase of a line: told by what the loop that makes it hot computes and does, from summaries of effects.

Names of functions and files are evidence of `analysis.evidence`: they shift how sure the answer is, and say nothing by
themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from perflint.analysis.call_graph.callbacks import FunctionRoot
from perflint.analysis.effects.summary import Effect, Effects
from perflint.analysis.evidence import is_range, phases_named
from perflint.analysis.names.refs import Scope
from perflint.finding import Confidence, Heat
from perflint.ir.own_effects import READS
from perflint.ir.summary import ByPlace, FunctionFacts

if TYPE_CHECKING:
    from perflint.analysis.program import Program

__all__ = ["Phase", "PhaseOf", "Phases"]


class Phase(str, Enum):
    """What a program does at a time."""

    TRAIN = "train"
    EVALUATE = "evaluate"
    GENERATE = "generate"
    SERVE = "serve"
    DATA = "data"
    SET_UP = "set-up"
    CHECKPOINT = "checkpoint"
    BENCHMARK = "benchmark"
    TEST = "test"


class PhaseOf(NamedTuple):
    """The phase of a line, with the facts that say so. `ends_in_reads` tells that each of its steps reads results on
    the host, so that the next one begins with nothing queued.
    """

    phase: Phase
    confidence: Confidence
    facts: tuple[str, ...]
    ends_in_reads: bool = False


_BY_ROLE = {
    "data": Phase.DATA,
    "decode": Phase.GENERATE,
    "infer": Phase.EVALUATE,
    "eval": Phase.EVALUATE,
    "metric": Phase.EVALUATE,
}
#: Names that fit a phase: who generates evaluates a model, and the other way round.
_SAYING = {
    Phase.EVALUATE: frozenset({"evaluate", "generate", "serve"}),
    Phase.GENERATE: frozenset({"evaluate", "generate", "serve"}),
}
#: Roots that are part of training by contract, whoever calls them.
_TRAINING_ROOTS = frozenset({"train", "forward", "hook", "autograd", "handler"})
_PASSES = frozenset({"batches", "eval", "texts", "driver"})


class _Contents(NamedTuple):
    """What stands in each loop of a function, by the place of the loop: calls, the contexts of reads, its own context.

    Made of all loops together: loop by loop it would take the square of their number.
    """

    calls: dict[int, list[int]]
    reads: dict[int, list[int]]
    contexts: dict[int, int]


def _contents(facts: FunctionFacts) -> _Contents:
    found = _Contents({}, {}, {})
    for place, call in enumerate(facts.calls):
        for loop in facts.loops_around(call.context):
            found.calls.setdefault(loop, []).append(place)
    by_place = ByPlace(facts)
    for fact in facts.does:
        if fact.kind == READS:
            context = by_place.at((fact.line, fact.column))
            if context >= 0 and facts.contexts[context].kind in ("asked", "plain"):
                continue  # `x.item() if wanted else 0`: not in each iteration, as far as anybody knows
            for loop in facts.loops_around(context):
                found.reads.setdefault(loop, []).append(context)
    for at, item in enumerate(facts.contexts):
        if item.kind == "loop":
            found.contexts.setdefault(int(item.detail), at)
    return found


class Phases:
    """Answers for one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._loops: dict[tuple[Scope, int], PhaseOf] = {}
        self._held: dict[Scope, _Contents] = {}

    def of(self, scope: Scope, context: int = -1) -> PhaseOf:
        """The phase of a context of a function."""
        program = self._program
        if scope.path in program.resolver.tests:
            return PhaseOf(Phase.TEST, Confidence.HIGH, ("the file holds tests",))
        origin = program.origin(scope, context)
        if isinstance(origin, FunctionRoot):
            found = self._of_root(origin, scope)
        elif origin is not None:
            known = self._loops.get(origin)
            if known is None:
                known = self._loops[origin] = self._of_loop(*origin)
            found = known
        else:
            found = self._cold(scope)
        return self._weighed(found, scope)

    # What runs on every step.

    def _of_root(self, root: FunctionRoot, scope: Scope) -> PhaseOf:
        phase = _BY_ROLE.get(root.role)
        if phase is None:
            off = self._program.grad_off(scope)
            phase = Phase.EVALUATE if off else Phase.TRAIN
        effects = self._program.effects(scope)
        reads = phase is Phase.EVALUATE and effects.does(Effect.READS)
        sure = Confidence.MEDIUM if root.by_name or root.role == "forward" else Confidence.HIGH
        return PhaseOf(phase, sure, (root.text,), reads)

    def _of_loop(self, scope: Scope, index: int) -> PhaseOf:
        program = self._program
        role = program.roots.loops[scope, index].role
        inside = list(self._inside(scope, index))
        done = {witness.effect for effects in inside for witness in effects.may}
        if role == "data":
            return PhaseOf(Phase.DATA, Confidence.HIGH, ("the loop feeds another one",))
        if role == "decode":
            return PhaseOf(Phase.GENERATE, Confidence.HIGH, ("each iteration makes one token or step of a sample",))
        if role not in _PASSES:
            return self._of_steps(scope, index, done)
        reads = self._reads(scope, index, inside)
        facts = ["no backward pass is reached from the loop"]
        if Effect.BACKWARD in done:
            # What walks back below has a loop of its own for it: an input is fitted, a probe is trained.
            own = ("each iteration takes steps of its own",)
            return PhaseOf(Phase.EVALUATE, Confidence.LOW, own, reads)
        if program.grad_off(scope, self._context(scope, index)):
            facts.append("gradients are off")
        if Effect.GENERATES in done:
            return PhaseOf(Phase.GENERATE, Confidence.HIGH, (*facts, "each iteration generates"), reads)
        if Effect.FILES in done:
            facts.append("results go to files")
        return PhaseOf(Phase.EVALUATE, Confidence.HIGH if len(facts) > 1 else Confidence.MEDIUM, tuple(facts), reads)

    def _of_steps(self, scope: Scope, index: int, done: set[Effect]) -> PhaseOf:
        loop = self._program.function(scope).loops[index]
        if Effect.STEPS in done:
            return PhaseOf(Phase.TRAIN, Confidence.HIGH, ("the loop steps an optimizer",))
        clocks = self._program.effects(scope).does(Effect.CLOCK)
        # What a step of training calls takes parts of its batch, however they are counted.
        if clocks and is_range(loop.iterable) and self._program.heat(scope) < Heat.STEP:
            facts = ("no optimizer steps", "the function reads a clock", "each iteration repeats the same input")
            return PhaseOf(Phase.BENCHMARK, Confidence.MEDIUM, facts)
        return PhaseOf(Phase.TRAIN, Confidence.MEDIUM, ("the loop runs a backward pass",))

    def _inside(self, scope: Scope, index: int) -> Iterator[Effects]:
        """The effects of all calls in a loop."""
        for place in self._contents(scope).calls.get(index, ()):
            yield self._program.call_effects(scope, place)

    def _contents(self, scope: Scope) -> _Contents:
        known = self._held.get(scope)
        if known is None:
            known = self._held[scope] = _contents(self._program.function(scope))
        return known

    def _reads(self, scope: Scope, index: int, inside: list[Effects]) -> bool:
        """Whether each iteration reads values back: in the loop itself, or in a function that it calls."""
        for context in self._contents(scope).reads.get(index, ()):
            if self._program.heat_at(scope, context) >= Heat.STEP:
                return True
        return any(effects.surely(Effect.READS) for effects in inside)

    def _context(self, scope: Scope, index: int) -> int:
        return self._contents(scope).contexts.get(index, -1)

    def is_in_training(self, scope: Scope) -> bool:
        """Whether a function runs on the steps of a training as well, whatever else runs it."""
        return scope in self._trained

    def is_in_forward(self, scope: Scope) -> bool:
        """Whether the forward of some module runs a function, whatever else runs it: one route is kept, of several."""
        return scope in self._forwarded

    @cached_property
    def _forwarded(self) -> frozenset[Scope]:
        found = {scope for scope, root in self._program.roots.functions.items() if root.role == "forward"}
        waiting = list(found)
        while waiting:
            scope = waiting.pop()
            for edge in self._program.graph.outgoing.get(scope, ()):
                is_sure = edge.confidence is Confidence.HIGH and not edge.callback
                if is_sure and edge.callee not in found and self._is_step(scope, edge.context):
                    found.add(edge.callee)
                    waiting.append(edge.callee)
        return frozenset(found)

    @cached_property
    def _trained(self) -> frozenset[Scope]:
        program = self._program
        roots = program.roots
        found = {scope for scope, root in roots.functions.items() if root.role in _TRAINING_ROOTS}
        waiting = list(found)
        for (scope, index), loop in roots.loops.items():
            if loop.role == "train":
                waiting += self._called_in(scope, index)
        found.update(waiting)
        while waiting:
            scope = waiting.pop()
            for edge in program.graph.outgoing.get(scope, ()):
                if edge.callee not in found and self._is_step(scope, edge.context):
                    found.add(edge.callee)
                    waiting.append(edge.callee)
        return frozenset(found)

    def _called_in(self, scope: Scope, index: int) -> Iterator[Scope]:
        """The functions that a loop runs on every step, and not every hundred of them."""
        facts = self._program.function(scope)
        for edge in self._program.graph.outgoing.get(scope, ()):
            if index in facts.loops_around(edge.context) and self._is_step(scope, edge.context):
                yield edge.callee

    def _is_step(self, scope: Scope, context: int) -> bool:
        return self._program.heat_at(scope, context) >= Heat.STEP

    # What does not.

    def _cold(self, scope: Scope) -> PhaseOf:
        effects = self._program.effects(scope)
        if effects.does(Effect.FILES) and not effects.does(Effect.FORWARD, Effect.BACKWARD, Effect.STEPS):
            return PhaseOf(Phase.CHECKPOINT, Confidence.LOW, ("it writes files and runs no model",))
        return PhaseOf(Phase.SET_UP, Confidence.LOW, ("nothing runs it on every step",))

    def _weighed(self, found: PhaseOf, scope: Scope) -> PhaseOf:
        """The same, surer where the names of function and file agree, less sure where they say something else."""
        facts = self._program.function(scope)
        named = phases_named(facts.name, scope.path)
        if not named:
            return found
        if named & _SAYING.get(found.phase, {found.phase.value}):
            return found._replace(confidence=Confidence(min(found.confidence + 1, Confidence.HIGH)))
        return found._replace(confidence=Confidence(max(found.confidence - 1, Confidence.LOW)))
