"""The abstract state of the device's queue at each node of a function, for those who ask what a wait costs there.

The host launches kernels ahead of the device. A wait drains the queue; what it costs is the device's idle time until
the next kernels are launched. A second wait drains what has been launched since, so it costs little just after another
one, and a wait costs little where nothing is launched any more before the iteration ends.

Both are dataflow problems over the control-flow graph: forward, what has been launched since which waits; backward,
what will be launched before the iteration ends. They are about iterations as they are as a rule: what a rare branch
does is left out, and so is what happened before the first iteration of the loop over steps.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, TypeAlias

from perflint.analysis.device_queue.functions import Entry
from perflint.analysis.device_queue.transfer import FULL, NOTHING, Transfer
from perflint.finding import Hop
from perflint.ir.control_flow import Block, Condition, ControlFlow
from perflint.ir.dataflow import Problem, Solution, backward, forward

__all__ = ["DeviceQueue", "QueueState"]


class QueueState(NamedTuple):
    """How many kernels have been launched since the last wait (`FULL` for many or for nobody knows), and the waits
    that may have been the last one: nodes of the function, or a place outside of it. A lattice: the number is joined
    by its maximum, the waits by union.
    """

    launched: int
    emptied_by: frozenset[ast.AST | Hop] = frozenset()

    @property
    def is_full(self) -> bool:
        return self.launched >= FULL

    def join(self, other: QueueState) -> QueueState:
        launched = max(self.launched, other.launched)
        return _UNKNOWN if launched >= FULL else QueueState(launched, self.emptied_by | other.emptied_by)


_UNKNOWN = QueueState(FULL)
_Changes: TypeAlias = Callable[[ast.AST], Transfer]
_Loop: TypeAlias = "ast.For | ast.AsyncFor | ast.While"


class DeviceQueue:
    """The queue in one function. `change` says what evaluating a node does, its operands left out; `step_loop` is the
    loop of the function whose iterations are steps, None where the function itself is a part of a step; `ends_step`
    where nothing of the step comes after it; `entry` says what its callers have left. `is_rare` tells tests whose
    outcome lets something run on few iterations only. `may_wait` says of a node whether `change` may be one that waits,
    for less: where the queue is full, nothing else has to be told.
    """

    def __init__(
        self,
        graph: ControlFlow,
        change: _Changes,
        step_loop: _Loop | None,
        is_rare: Callable[[Condition], bool],
        *,
        may_wait: Callable[[ast.AST], bool],
        ends_step: bool = False,
        entry: Callable[[], Entry] | None = None,
    ) -> None:
        self._graph, self._entry = graph, entry
        self._iteration = _Iteration(graph, step_loop, is_rare, ends=ends_step or step_loop is not None)
        self._change, self._may_wait = change, may_wait

    def before(self, node: ast.AST) -> QueueState:
        """The queue where a node is about to be evaluated, its operands done."""
        found = self._launched.before(node)
        return (found and found.joined) or _UNKNOWN

    def at_exit(self) -> QueueState | None:
        """The queue where the function returns; None where it does not."""
        found = self._launched.entering(self._graph.exit)
        return found and found.joined

    def launched_after(self, node: ast.AST) -> int:
        """How many kernels are launched between a node and the end of the iteration, at most."""
        found = self._to_come.after(node)
        return FULL if found is None else found

    def launched_until_next_wait(self, node: ast.AST) -> int:
        """How many kernels are launched behind a node before the host waits again, at most; `FULL` where it need not
        wait in the same iteration.
        """
        found = self._until_wait.after(node)
        return FULL if found is None else found

    @cached_property
    def _launched(self) -> Solution[_Arrived]:
        # What is done before the first iteration is told of no other.
        header = self._iteration.header
        start = QueueState(0) if header is not None else _UNKNOWN if self._entry is None else _state_of(self._entry())
        problem = _Launched(self._graph, self._change, self._may_wait, self._iteration, start)
        return forward(self._graph, problem, header, self._iteration.region)

    @cached_property
    def _to_come(self) -> Solution[int]:
        return backward(self._graph, _ToCome(self._change, self._iteration), self._iteration.region)

    @cached_property
    def _until_wait(self) -> Solution[int]:
        return backward(self._graph, _UntilWait(self._change, self._may_wait, self._iteration), self._iteration.region)


def _state_of(entry: Entry) -> QueueState:
    if entry.launched >= FULL:
        return _UNKNOWN
    return QueueState(entry.launched, frozenset(entry.emptied_by))


class _Iteration:
    """Where an iteration of the loop over steps begins and ends, and which edges are taken as a rule."""

    def __init__(
        self, graph: ControlFlow, loop: _Loop | None, is_rare: Callable[[Condition], bool], *, ends: bool
    ) -> None:
        self.loop, self.failure, self.ends_with_function = loop, graph.failure, ends
        self.header = graph.block_of(loop) if loop is not None else None
        self.inside = graph.loop(loop) if loop is not None else frozenset()
        #: What an iteration may run; there may be hundreds of loops in a function.
        self.region = graph.region(loop) if loop is not None else None
        self._is_rare = is_rare
        self._rare: dict[int, bool] = {}

    def ends(self, source: Block, target: Block) -> bool:
        """Whether an edge leaves the loop in the middle of an iteration."""
        return source.index in self.inside and source is not self.header and target.index not in self.inside

    def is_rare(self, source: Block, target: Block) -> bool:
        """Whether an edge is taken on few iterations, and another one on the others."""
        others = [item for item in source.successors if item is not source.handler and not self._only_fails(item)]
        return self._enters_rarely(target) and not all(map(self._enters_rarely, others))

    def _only_fails(self, block: Block) -> bool:
        """Whether a block leads to an error alone: where an assertion holds, the function goes on as a rule."""
        seen: set[int] = set()
        while len(block.successors) == 1 and block.index not in seen:
            seen.add(block.index)
            block = block.successors[0]
            if block is self.failure:
                return True
        return False

    def _enters_rarely(self, target: Block) -> bool:
        if not target.entered_when:
            return False
        if target.index not in self._rare:
            self._rare[target.index] = any(map(self._is_rare, target.entered_when))
        return self._rare[target.index]


class _Arrived(NamedTuple):
    """The queue at a place; at the header of a loop, where the loop is entered and where an iteration has ended."""

    state: QueueState | None
    again: QueueState | None = None

    @property
    def joined(self) -> QueueState | None:
        return _joined(self.state, self.again)


class _Launched(Problem[_Arrived]):
    """Forward: launches since the last wait. A loop runs one iteration at least, as loops do as a rule."""

    def __init__(
        self,
        graph: ControlFlow,
        change: _Changes,
        may_wait: Callable[[ast.AST], bool],
        iteration: _Iteration,
        start: QueueState,
    ) -> None:
        self._loops, self._change, self._iteration, self._start = graph.loops, change, iteration, start
        self._may_wait = may_wait

    def at_start(self) -> _Arrived:
        return _Arrived(self._start)

    def join(self, one: _Arrived, other: _Arrived) -> _Arrived:
        return _Arrived(_joined(one.state, other.state), _joined(one.again, other.again))

    def transfer(self, node: ast.AST, state: _Arrived) -> _Arrived:
        if all(item is None or item is _UNKNOWN for item in state) and not self._may_wait(node):
            return state
        change = self._change(node)
        return state if change is NOTHING else _Arrived(*(item and _behind(item, change, node) for item in state))

    def along(self, source: Block, target: Block, state: _Arrived) -> _Arrived | None:
        if self._iteration.is_rare(source, target):
            return None
        leaves = source.index in self._loops and target.index not in self._loops[source.index]
        found = state.again if leaves else state.joined
        if found is None:
            return None
        is_again = target.index in self._loops and source.index in self._loops[target.index]
        return _Arrived(None, found) if is_again else _Arrived(found)


def _behind(state: QueueState, change: Transfer, node: ast.AST) -> QueueState:
    found: QueueState | None = None
    if change.through is not None:
        found = state._replace(launched=state.launched + change.through) if change.through else state
    if change.fresh is not None:
        found = _joined(found, QueueState(change.fresh, frozenset({node})))
    return state if found is None else _UNKNOWN if found.is_full else found


def _joined(one: QueueState | None, other: QueueState | None) -> QueueState | None:
    if one is None or other is None:
        return other if one is None else one
    return one.join(other)


class _ToCome(Problem[int]):
    def __init__(self, change: _Changes, iteration: _Iteration) -> None:
        self._change, self._iteration = change, iteration

    def at_start(self) -> int:
        return 0 if self._iteration.ends_with_function else FULL

    def join(self, one: int, other: int) -> int:
        return max(one, other)

    def transfer(self, node: ast.AST, state: int) -> int:
        if node is self._iteration.loop:
            return 0
        return state if state >= FULL else min(FULL, state + self._change(node).total)

    def along(self, source: Block, target: Block, state: int) -> int | None:
        if source is self._iteration.failure:
            return 0
        if self._iteration.is_rare(source, target):
            return None
        return 0 if self._iteration.ends(source, target) else state


class _UntilWait(Problem[int]):
    """Backward: launches until the next wait of the iteration."""

    def __init__(self, change: _Changes, may_wait: Callable[[ast.AST], bool], iteration: _Iteration) -> None:
        self._change, self._may_wait, self._iteration = change, may_wait, iteration

    def at_start(self) -> int:
        return FULL

    def join(self, one: int, other: int) -> int:
        return max(one, other)

    def transfer(self, node: ast.AST, state: int) -> int:
        if node is self._iteration.loop or (state >= FULL and not self._may_wait(node)):
            return FULL
        change = self._change(node)
        if change.empties:
            return change.total
        return min(FULL, state + change.total)

    def along(self, source: Block, target: Block, state: int) -> int | None:
        if source is self._iteration.failure or self._iteration.is_rare(source, target):
            return None
        return FULL if self._iteration.ends(source, target) else state
