"""The device's queue across calls: what running a function does to it, and what a function's callers leave in it.

Both are least fixed points over the call graph, worked out from summaries when somebody asks: of callees for what a
call does, of the calls that make a function hot for the queue where it begins. Answers do not depend on the order of
the questions, since what is solved at a time is closed under what it leans on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.device_queue.regions import Event, Region, regions_of
from perflint.analysis.device_queue.transfer import FULL, NEVER, NOTHING, WORK, Transfer, launching, waiting
from perflint.analysis.effects.own import of_call
from perflint.analysis.effects.summary import Effect
from perflint.analysis.evidence import runs_a_model
from perflint.analysis.names.declared import is_abstract
from perflint.analysis.names.refs import CLASS, EXTERNAL, EXTERNAL_INSTANCE, FUNCTION, INSTANCE, Ref, Scope
from perflint.analysis.naming.values import SUPPRESSES
from perflint.finding import Heat, Hop
from perflint.ir.callees import last_name
from perflint.ir.own_effects import COMPUTES
from perflint.ir.summary import CallFacts, FunctionFacts
from perflint.torch_model import tensors
from perflint.torch_model.modules import is_light
from perflint.torch_model.names import canonical, within

if TYPE_CHECKING:
    from perflint.analysis.program import Program

__all__ = ["Entry", "FunctionQueues", "Start", "in_order", "solve"]

_WORKING = frozenset({Effect.FORWARD, Effect.BACKWARD, Effect.STEPS, Effect.GENERATES})
_WAITING = frozenset({Effect.WAITS, Effect.READS})
#: Functions that make a tensor on the host where they are not told a device, and what only switches something.
_OF_HOST_MEMORY = tensors.CONSTRUCTORS | tensors.HOST_CONSTRUCTORS
_MODES = within("torch", "no_grad enable_grad inference_mode set_grad_enabled autocast device manual_seed")
#: Libraries of arrays, and those of tensors.
_ARRAYS = frozenset("numpy scipy gym gymnasium cv2 pandas".split())
_TENSORS = frozenset("torch jax tensorflow cupy mxnet torchvision torchaudio tensordict einops".split())
#: Functions that wait whatever they are given; of repeats the host may know the sum.
_COUNTING = frozenset(tensors.SYNC_FUNCTIONS) - {"torch.repeat_interleave"}
#: What a loss of torch launches, an activation, a normalization.
_A_FEW = 2
#: Of the methods that read, the one that only works on the host.
_OF_HOST = "numpy"

_Answer = TypeVar("_Answer")


class Entry(NamedTuple):
    """The queue where a function begins: launches since the last wait at most, and the waits that may have been it, in
    order.
    """

    launched: int
    emptied_by: tuple[Hop, ...] = ()

    def join(self, other: Entry) -> Entry:
        launched = max(self.launched, other.launched)
        if launched >= FULL:
            return _FULL
        if self.emptied_by == other.emptied_by:
            return Entry(launched, self.emptied_by)
        return Entry(launched, tuple(sorted({*self.emptied_by, *other.emptied_by}, key=in_order)))

    def after(self, code: Transfer) -> Entry | None:
        """The queue behind some code; None where it does not return."""
        found = None
        if code.through is not None:
            launched = self.launched + code.through
            found = _FULL if launched >= FULL else Entry(launched, self.emptied_by)
        if code.fresh is not None:
            waited = _FULL if code.fresh >= FULL else Entry(code.fresh, () if code.wait is None else (code.wait,))
            found = waited if found is None else found.join(waited)
        return found


class Start(NamedTuple):
    """The queue where a function begins, told by the names in its callers; and the calls that leave it, for who knows
    the values there. No calls where something else may have run in between.
    """

    entry: Entry
    ways: tuple[Edge, ...] = ()


def in_order(place: Hop) -> tuple[str, int, str]:
    return place.path, place.line, place.text


_EMPTY, _FULL = Entry(0), Entry(FULL)
_States = dict[int, Entry]


class FunctionQueues:
    """Answers for one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._transfers: dict[Scope, Transfer] = {}
        self._entries: dict[Scope, Entry | None] = {}
        self._regions: dict[Scope, Region] = {}
        self._calls: dict[Scope, dict[int, list[Edge]]] = {}
        self._on_host: dict[str, bool] = {}

    # What running code does.

    def of(self, scope: Scope) -> Transfer:
        """What one run of a function does to the queue."""
        if scope not in self._transfers:
            solve(scope, self._callees, self._of_body, NEVER, self._transfers)
        return self._transfers[scope]

    def of_call(self, scope: Scope, index: int) -> Transfer:
        """What one call of a function does to the queue, by its place in the function's facts."""
        for edge in self._edges(scope).get(index, ()):
            self.of(edge.callee)
        return self._of_call(scope, index)

    def _callees(self, scope: Scope) -> list[Scope]:
        return [edge.callee for edges in self._edges(scope).values() for edge in edges]

    def _edges(self, scope: Scope) -> dict[int, list[Edge]]:
        """By the place of each call, the functions of the project that it runs: no generators, which run nothing yet,
        and no methods that are there to be overridden.
        """
        found = self._calls.get(scope)
        if found is None:
            found = self._calls[scope] = {}
            for edge in self._program.graph.outgoing.get(scope, ()):
                facts = self._program.function(edge.callee)
                if edge.index >= 0 and not facts.is_generator and not is_abstract(facts):
                    found.setdefault(edge.index, []).append(edge)
        return found

    def _of_body(self, scope: Scope) -> Transfer:
        return self._of_region(scope, self._region(scope))

    def _region(self, scope: Scope) -> Region:
        found = self._regions.get(scope)
        if found is None:
            found = self._regions[scope] = regions_of(self._program.function(scope))
        return found

    def _of_region(self, scope: Scope, region: Region) -> Transfer:
        """A loop runs once at least, as loops do as a rule; rare code is left out."""
        found = NOTHING
        for part, other in _arms(region):
            if isinstance(part, Event):
                found = found.then(self._of_event(scope, part))
            elif part.kind == "loop":
                found = found.then(self._of_region(scope, part).again())
            elif part.kind in ("branch", "maybe"):
                otherwise = NOTHING if other is None else self._of_region(scope, other)
                found = found.then(self._of_region(scope, part).join(otherwise))
        return found

    def _of_event(self, scope: Scope, event: Event) -> Transfer:
        fact = event.fact
        if fact is None:
            return self._of_call(scope, event.index)
        if fact.kind == COMPUTES:
            return NOTHING if self._computes_on_host(scope.path) else launching(1)
        if fact.detail == _OF_HOST:
            return NOTHING
        return waiting(Hop(scope.path, fact.line, f"{fact.name}.{fact.detail}()" if fact.name else f".{fact.detail}()"))

    def _of_call(self, scope: Scope, index: int) -> Transfer:
        call = self._program.function(scope).calls[index]
        edges = self._edges(scope).get(index)
        if edges:
            found = self._transfers.get(edges[0].callee, NEVER)
            for edge in edges[1:]:
                found = found.join(self._transfers.get(edge.callee, NEVER))
            if any(edge.callback for edge in edges):
                found = found.join(NOTHING)  # it is handed over: who knows whether it runs
            return WORK.then(found) if self._is_module(scope, index) else found
        effects = of_call(call, scope, self._program.resolver)
        if not _WAITING.isdisjoint(effects) and last_name(call.func) != _OF_HOST:
            return waiting(Hop(scope.path, call.line, f"{last_name(call.func)}()"))
        if Effect.UNKNOWN in effects and SUPPRESSES.search(last_name(call.func)):
            # How many boxes are kept, the device has to tell; kernels of old fill tensors of the host.
            return waiting(Hop(scope.path, call.line, f"{last_name(call.func)}()"))
        if self._counts(call, scope):
            return waiting(Hop(scope.path, call.line, f"{last_name(call.func)}()"))
        if self._is_light(call, scope):
            return launching(_A_FEW)
        if not _WORKING.isdisjoint(effects) or runs_a_model(call.func):
            return WORK
        is_idle = self._is_idle(call, scope) or self._computes_on_host(scope.path)
        return launching(1) if Effect.LAUNCHES in effects and not is_idle else NOTHING

    def _counts(self, call: CallFacts, scope: Scope) -> bool:
        """`torch.linalg.eigh(x)`, `torch.nonzero(x)`: the host waits for errors, or for a size."""
        if self._computes_on_host(scope.path):
            return False
        names = [canonical(ref.name) for ref in self._program.refs(call.func, scope) if ref.kind == EXTERNAL]
        return bool(names) and all(name in _COUNTING for name in names)

    def _is_light(self, call: CallFacts, scope: Scope) -> bool:
        """`self.criterion(x, y)`, of a loss of torch."""
        refs = self._program.refs(call.func, scope)
        return bool(refs) and all(ref.kind == EXTERNAL_INSTANCE and is_light(ref.name) for ref in refs)

    def _is_idle(self, call: CallFacts, scope: Scope) -> bool:
        """`torch.tensor(rows)`, `torch.no_grad()`: the device has nothing to do for it."""
        names = [canonical(ref.name) for ref in self._program.refs(call.func, scope) if ref.kind == EXTERNAL]
        is_placed = any(key in ("device", "") for key, _ in call.keywords)
        return bool(names) and all(name in _MODES or (name in _OF_HOST_MEMORY and not is_placed) for name in names)

    def _computes_on_host(self, path: str) -> bool:
        """Whether a file computes with arrays and knows no tensors: a replay buffer, an environment."""
        found = self._on_host.get(path)
        if found is None:
            tops = {target.partition(".")[0] for target in self._program.summaries[path].imports.values()}
            found = self._on_host[path] = not tops.isdisjoint(_ARRAYS) and tops.isdisjoint(_TENSORS)
        return found

    def _is_module(self, scope: Scope, index: int) -> bool:
        program = self._program
        refs = program.refs(program.function(scope).calls[index].func, scope)
        return any(
            ref.kind == INSTANCE and ref.path and program.is_module(Ref(CLASS, ref.path, ref.name)) for ref in refs
        )

    # What callers leave in it.

    def start(self, scope: Scope) -> Start:
        """The queue where a function begins, by all calls that train by it; where none does, by the one that makes it
        hot. Full where nobody knows.
        """
        ways = self._ways(scope)
        return Start(self._entry(scope), tuple(ways) if all(map(self._is_called_there, ways)) else ())

    def _entry(self, scope: Scope) -> Entry:
        if scope not in self._entries:
            solve(scope, self._leant_on, self._of_ways, None, self._entries)
        return self._entries[scope] or _FULL

    def _leant_on(self, scope: Scope) -> list[Scope]:
        return [edge.caller for edge in self._ways(scope) if not self._is_in_step_loop(edge)]

    def _ways(self, scope: Scope) -> list[Edge]:
        program = self._program
        hottest = program.hottest_call(scope)
        edges = [edge for edge in program.callers(scope) if program.role(edge.caller, edge.context) == "train"]
        if not edges and hottest is not None and hottest.index >= 0:
            edges = [hottest]
        return [edge for edge in edges if program.heat_at(edge.caller, edge.context) >= Heat.STEP]

    def _is_in_step_loop(self, edge: Edge) -> bool:
        facts = self._program.function(edge.caller)
        return any(self._is_step_loop(edge.caller, loop, facts) for loop in facts.loops_around(edge.context))

    def _is_step_loop(self, scope: Scope, loop: int, facts: FunctionFacts) -> bool:
        """Whether the iterations of a loop are steps: of the one before the first of them nothing is told."""
        found = self._program.roots.loops.get((scope, loop))
        if found is None or found.heat < Heat.STEP:
            return False
        return self._program.heat_at(scope, facts.loops[loop].context) < Heat.STEP

    def _of_ways(self, scope: Scope) -> Entry | None:
        found: Entry | None = None
        ways = self._ways(scope)
        if not ways:
            return _FULL
        for edge in ways:
            self._of_callees_of(edge.caller)
            start = _EMPTY if self._is_in_step_loop(edge) else self._entries.get(edge.caller)
            if start is None:
                continue
            state = self._states(edge.caller, start).get(edge.index)
            if state is not None and not self._is_called_there(edge):
                state = _FULL
            if state is not None:
                found = state if found is None else found.join(state)
        return found

    def _is_called_there(self, edge: Edge) -> bool:
        """Whether a call runs a function itself: a `Sequential` runs other modules first, and who is handed a function
        does what nobody sees.
        """
        call = self._program.function(edge.caller).calls[edge.index]
        refs = self._program.refs(call.func, edge.caller)
        return not edge.callback and any(ref.kind in (FUNCTION, CLASS, INSTANCE) for ref in refs)

    def _of_callees_of(self, scope: Scope) -> None:
        for callee in self._callees(scope):
            self.of(callee)

    def _states(self, scope: Scope, start: Entry) -> _States:
        """The queue before each call of a function."""
        states: _States = {}
        self._run(scope, self._region(scope), start, states)
        return states

    def _run(self, scope: Scope, region: Region, state: Entry | None, states: _States) -> Entry | None:
        for part, other in _arms(region):
            if state is None:
                return None
            if isinstance(part, Event):
                if part.fact is None:
                    known = states.get(part.index)
                    states[part.index] = state if known is None else known.join(state)
                state = state.after(self._of_event(scope, part))
            elif part.kind == "loop":
                state = self._run_loop(scope, part, state, states)
            else:
                after = self._run(scope, part, state, states)
                if part.kind != "rare":
                    otherwise = state if other is None else self._run(scope, other, state, states)
                    state = _joined(after, otherwise)
        return state

    def _run_loop(self, scope: Scope, loop: Region, state: Entry, states: _States) -> Entry | None:
        if self._is_step_loop(scope, loop.loop, self._program.function(scope)):
            state = _EMPTY
        while True:
            after = self._run(scope, loop, state, states)
            again = state if after is None else state.join(after)
            if again == state:
                return after
            state = again


def _arms(region: Region) -> list[tuple[Region | Event, Region | None]]:
    """The parts of a region in order, each arm of a test together with the other one."""
    found: list[tuple[Region | Event, Region | None]] = []
    parts = region.parts
    at = 0
    while at < len(parts):
        part = parts[at]
        following = parts[at + 1] if at + 1 < len(parts) else None
        at += 1
        if isinstance(part, Region) and isinstance(following, Region) and part.is_other_arm(following):
            found.append((part, following))
            at += 1
        else:
            found.append((part, None))
    return found


def _joined(one: Entry | None, other: Entry | None) -> Entry | None:
    if one is None or other is None:
        return other if one is None else one
    return one.join(other)


def solve(
    start: Scope,
    leans_on: Callable[[Scope], Iterable[Scope]],
    evaluate: Callable[[Scope], _Answer],
    bottom: _Answer,
    known: dict[Scope, _Answer],
) -> None:
    """The least fixed point of all that `start` leans on, put into `known`."""
    members = _closure(start, leans_on, known)
    leaning: dict[Scope, list[Scope]] = {member: [] for member in members}
    for member in members:
        for other in leans_on(member):
            if other in leaning:
                leaning[other].append(member)
    known.update(dict.fromkeys(members, bottom))
    try:
        # What is leant on comes first; a set that keeps its order.
        waiting_for = dict.fromkeys(members)
        while waiting_for:
            member = next(iter(waiting_for))
            del waiting_for[member]
            found = evaluate(member)
            if found != known[member]:
                known[member] = found
                waiting_for.update(dict.fromkeys(leaning[member]))
    except BaseException:
        for member in members:
            known.pop(member, None)
        raise


def _closure(start: Scope, leans_on: Callable[[Scope], Iterable[Scope]], known: Mapping[Scope, object]) -> list[Scope]:
    """All that is not known yet of what `start` leans on, what is leant on first."""
    found: dict[Scope, None] = {}
    seen = {start}
    stack = [(start, iter(leans_on(start)))]
    while stack:
        scope, others = stack[-1]
        for other in others:
            if other not in seen and other not in known:
                seen.add(other)
                stack.append((other, iter(leans_on(other))))
                break
        else:
            stack.pop()
            found[scope] = None
    return list(found)
