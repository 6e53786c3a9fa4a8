"""Effects of functions, bottom-up over the call graph; strongly connected components are solved to a least fixpoint.

May-effects are sets that only grow, must-effects sets that grow from nothing as well, so the fixpoint does not depend
on the order in which functions are asked about. Every function is summarised once, when somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.effects.own import (
    Done,
    carried,
    done_by,
    kept_by,
    of_call,
    parameters,
    returned_by,
    shown,
    trained_by,
    written_by,
)
from perflint.analysis.effects.summary import NOTHING, Effect, Effects, Kept, Witness
from perflint.analysis.names.decorated import put_in_place
from perflint.analysis.names.refs import Scope
from perflint.finding import Confidence
from perflint.ir.summary import FunctionFacts, Value

if TYPE_CHECKING:
    from perflint.analysis.program import Program

__all__ = ["Composer"]

#: Names of a path that are kept.
_LONGEST = 4
_ORDER = {effect: place for place, effect in enumerate(Effect)}


class _Run(NamedTuple):
    """A run of another function by a function's text: at which line, whether always, and by which call."""

    callee: Scope
    line: int
    is_sure: bool
    edge: Edge | None


class Composer:
    """Answers for one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[Scope, Effects] = {}
        self._runs: dict[Scope, list[_Run]] = {}
        self._own: dict[Scope, list[Done]] = {}

    def of(self, scope: Scope) -> Effects:
        """What running a function does."""
        found = self._known.get(scope)
        if found is None:
            for component in self._components(scope):
                self._solve(component)
            found = self._known[scope]
        return found

    def of_call(self, scope: Scope, index: int) -> Effects:
        """What one call of a function does, by its place in the function's facts; parameters are the callee's."""
        facts = self._program.function(scope)
        call = facts.calls[index]
        edges = [edge for edge in self._program.graph.outgoing.get(scope, ()) if edge.index == index]
        runs = [_Run(edge.callee, call.line, is_sure=True, edge=edge) for edge in edges]
        own = [] if edges else [
            Done(effect, call.line, shown(call.func), is_sure=True)
            for effect in of_call(call, scope, self._program.resolver)
        ]  # fmt: skip
        for run in runs:
            self.of(run.callee)
        may = self._may(scope, own, runs)
        must = {done.effect for done in own} | self._must(runs)
        several = [self.of(run.callee) for run in runs if run.edge is not None]
        return Effects(
            may,
            _sorted(must),
            tuple(sorted({kept for item in several for kept in item.keeps})),
            *(tuple(sorted({name for item in several for name in getattr(item, field)})) for field in _NAMED),
        )

    # The runs of other functions.

    def _runs_of(self, scope: Scope) -> list[_Run]:
        known = self._runs.get(scope)
        if known is not None:
            return known
        facts = self._program.function(scope)
        found: list[_Run] = []
        for edge in self._program.graph.outgoing.get(scope, ()):
            sure = False
            if edge.index >= 0 and not edge.callback and not edge.stands_in and edge.confidence is Confidence.HIGH:
                call = facts.calls[edge.index]
                # Calling a generator runs nothing of it yet.
                is_generator = self._program.function(edge.callee).is_generator
                sure = not is_generator and facts.is_sure(call.line, call.column)
            found.append(_Run(edge.callee, edge.line, sure, edge))
        if facts.decorators:
            found += [
                _Run(callee, facts.line, is_sure=True, edge=None)
                for callee in put_in_place(scope, facts, self._program.resolver)
            ]
        self._runs[scope] = found
        return found

    # Strongly connected components, callees first.

    def _components(self, start: Scope) -> Iterator[list[Scope]]:
        """Tarjan's algorithm without recursion, from one function on, through those that are not known yet."""
        index: dict[Scope, int] = {start: 0}
        low: dict[Scope, int] = {start: 0}
        stack, on_stack = [start], {start}
        work: list[tuple[Scope, Iterator[Scope]]] = [(start, self._callees(start))]
        while work:
            scope, callees = work[-1]
            for callee in callees:
                if callee not in index:
                    index[callee] = low[callee] = len(index)
                    stack.append(callee)
                    on_stack.add(callee)
                    work.append((callee, self._callees(callee)))
                    break
                if callee in on_stack:
                    low[scope] = min(low[scope], index[callee])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[scope])
                if low[scope] == index[scope]:
                    component = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.append(member)
                        if member == scope:
                            break
                    yield component

    def _callees(self, scope: Scope) -> Iterator[Scope]:
        return iter([run.callee for run in self._runs_of(scope) if run.callee not in self._known])

    # The fixpoint of one component.

    def _solve(self, component: list[Scope]) -> None:
        members = set(component)
        callers: dict[Scope, list[Scope]] = {member: [] for member in component}
        for member in component:
            self._known[member] = NOTHING
            for run in self._runs_of(member):
                if run.callee in members:
                    callers[run.callee].append(member)
        waiting = sorted(component)
        queued = set(waiting)
        while waiting:
            member = waiting.pop()
            queued.discard(member)
            found = self._of_text(member)
            if found != self._known[member]:
                self._known[member] = found
                new = [caller for caller in callers[member] if caller not in queued]
                waiting += new
                queued.update(new)
        for member in component:
            self._runs.pop(member, None)
            self._own.pop(member, None)

    def _of_text(self, scope: Scope) -> Effects:
        facts = self._program.function(scope)
        runs = self._runs_of(scope)
        own = self._own.get(scope)
        if own is None:
            called = {run.edge.index for run in runs if run.edge is not None and not run.edge.callback}
            own = self._own[scope] = list(done_by(scope, facts, called, self._program.resolver))
            own += self._decoding(scope, facts)
        may = self._may(scope, own, runs)
        must = {done.effect for done in own if done.is_sure} | self._must(runs)
        walks_back = any(witness.effect is Effect.BACKWARD for witness in may)
        kept, written, trained = set(kept_by(scope.path, facts)), written_by(facts), set[str]()
        if walks_back:
            trained = trained_by(facts)
        for run in runs:
            callee = self._known[run.callee]
            if run.edge is not None and (callee.keeps or callee.writes or callee.trains):
                kept |= set(self._kept_through(run, facts, callee))
                written |= self._names_given(run.edge, facts, callee.writes)
                trained |= self._names_given(run.edge, facts, callee.trains)
        return Effects(may, _sorted(must), _nearest(kept), *map(_in_order, (written, trained, returned_by(facts))))

    def _decoding(self, scope: Scope, facts: FunctionFacts) -> Iterator[Done]:
        """A loop that makes one token, or one step of a sample, on each iteration: it generates as `generate` does."""
        loops = self._program.roots.loops
        for index, loop in enumerate(facts.loops):
            found = loops.get((scope, index))
            if found is not None and found.role == "decode":
                yield Done(Effect.GENERATES, loop.line, loop.text, is_sure=facts.is_sure(loop.line, loop.column))

    def _may(self, scope: Scope, own: Iterable[Done], runs: Iterable[_Run]) -> tuple[Witness, ...]:
        best: dict[Effect, _Key] = {}
        found: dict[Effect, Witness] = {}
        for done in own:
            witness = Witness(done.effect, 0, scope.path, done.line, done.text, done.line, None)
            _keep_nearest(witness, best, found)
        for run in runs:
            for witness in self._known[run.callee].may:
                effect, depth, path, line, text, _, _ = witness
                # Most are no nearer, which their depth tells.
                if effect not in best or depth < best[effect][0]:
                    further = Witness(effect, depth + 1, path, line, text, run.line, run.callee)
                    _keep_nearest(further, best, found)
        return tuple(sorted(found.values(), key=lambda witness: _ORDER[witness.effect]))

    def _must(self, runs: Iterable[_Run]) -> set[Effect]:
        """What all functions do that a sure call may run, of each such call."""
        by_call: dict[object, set[Effect]] = {}
        for number, run in enumerate(runs):
            if run.is_sure:
                key = run.edge.index if run.edge is not None else f"run {number}"
                done = set(self._known[run.callee].must)
                by_call[key] = by_call[key] & done if key in by_call else done
        return set().union(*by_call.values())

    def _kept_through(self, run: _Run, facts: FunctionFacts, callee: Effects) -> Iterator[Kept]:
        """What is kept by what a function calls, of the parameters that it hands on."""
        assert run.edge is not None
        given = parameters(facts)
        receiver = _receiver(facts.calls[run.edge.index].func) if run.edge.index >= 0 else ""
        for kept in callee.keeps:
            into = self._place(kept.into, run.edge, receiver, given)
            if not into:
                continue
            for name in carried(self._program.graph.argument(run.edge, kept.param)):
                if name in given:
                    yield kept._replace(param=name, into=into, depth=kept.depth + 1)

    def _place(self, into: str, edge: Edge, receiver: str, given: dict[str, int]) -> str:
        """What a callee keeps something in, as the caller calls it; "" for what the caller made itself."""
        if into.startswith("<"):
            return into
        first, dot, rest = into.partition(".")
        owner: Value = receiver if first in ("self", "cls") else self._program.graph.argument(edge, first)
        if not isinstance(owner, str) or owner.partition(".")[0] not in given:
            return ""
        # Recursion would make ever longer paths: a few steps of one tell all apart that anybody asks for.
        return ".".join(f"{owner}{dot}{rest}".split(".")[:_LONGEST])

    def _names_given(self, edge: Edge, facts: FunctionFacts, names: Iterable[str]) -> set[str]:
        """The parameters of a caller that a call hands to some parameters of the callee."""
        given = parameters(facts)
        argument = self._program.graph.argument
        return {item for name in names for item in carried(argument(edge, name)) if item in given}


_Key: TypeAlias = "tuple[int, str, int, str, int, Scope]"
_NOWHERE = Scope("", "")
_NAMED = ("writes", "trains", "returns")


def _keep_nearest(witness: Witness, best: dict[Effect, _Key], found: dict[Effect, Witness]) -> None:
    key = (witness.depth, witness.path, witness.line, witness.text, witness.at, witness.via or _NOWHERE)
    known = best.get(witness.effect)
    if known is None or key < known:
        best[witness.effect], found[witness.effect] = key, witness


def _nearest(kept: Iterable[Kept]) -> tuple[Kept, ...]:
    """Of the ways in which a parameter comes into the same thing, the shortest."""
    found: dict[tuple[str, str, str], Kept] = {}
    for item in sorted(kept, key=lambda item: (item.depth, item.path, item.line)):
        found.setdefault((item.param, item.how, item.into), item)
    return tuple(sorted(found.values()))


def _sorted(effects: Iterable[Effect]) -> tuple[Effect, ...]:
    return tuple(sorted(effects, key=_ORDER.__getitem__))


def _in_order(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))


def _receiver(func: Value) -> str:
    return func.rpartition(".")[0] if isinstance(func, str) else ""
