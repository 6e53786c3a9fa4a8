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
import enum
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, TypeAlias

from perflint.ir.control_flow import Block, Condition, ControlFlow
from perflint.ir.dataflow import Problem, Solution, backward, forward

__all__ = ["FULL", "Change", "DeviceQueue", "QueueState"]

#: So many launches are as good as any number: a wait for them is a wait for the device.
FULL = 6


class Change(enum.Enum):
    """What evaluating a node does to the queue, its operands left out."""

    NOTHING = "nothing"
    LAUNCHES = "launches a kernel, or hardly more"
    WORKS = "launches a good part of a step"
    WAITS = "waits until the queue is empty"


class QueueState(NamedTuple):
    """How many kernels have been launched since the last wait (`FULL` for many or for nobody knows), and the waits
    that may have been the last one. A lattice: the number is joined by its maximum, the waits by union.
    """

    launched: int
    emptied_by: frozenset[ast.AST] = frozenset()

    @property
    def is_full(self) -> bool:
        return self.launched >= FULL

    def join(self, other: QueueState) -> QueueState:
        launched = max(self.launched, other.launched)
        return _UNKNOWN if launched >= FULL else QueueState(launched, self.emptied_by | other.emptied_by)


_UNKNOWN = QueueState(FULL)
_Changes: TypeAlias = Callable[[ast.AST], Change]
_Loop: TypeAlias = "ast.For | ast.AsyncFor | ast.While"


class DeviceQueue:
    """The queue in one function. `change` says what each node does; `step_loop` is the loop of the function whose
    iterations are steps, None where the function itself is a part of a step; `ends_step` where nothing of the step
    comes after it, `starts_empty` where its callers have just waited. `is_rare` tells tests whose outcome lets
    something run on few iterations only.
    """

    def __init__(
        self,
        graph: ControlFlow,
        change: _Changes,
        step_loop: _Loop | None,
        is_rare: Callable[[Condition], bool],
        *,
        ends_step: bool = False,
        starts_empty: bool = False,
    ) -> None:
        self._graph, self._starts_empty = graph, starts_empty
        self._iteration = _Iteration(graph, step_loop, is_rare, ends=ends_step or step_loop is not None)
        self._change = change

    def before(self, node: ast.AST) -> QueueState:
        """The queue where a node is about to be evaluated, its operands done."""
        return self._launched.before(node) or _UNKNOWN

    def launched_after(self, node: ast.AST) -> int:
        """How many kernels are launched between a node and the end of the iteration, at most."""
        found = self._to_come.after(node)
        return FULL if found is None else found

    @cached_property
    def _launched(self) -> Solution[QueueState]:
        return forward(
            self._graph, _Launched(self._change, self._iteration, QueueState(0) if self._starts_empty else _UNKNOWN)
        )

    @cached_property
    def _to_come(self) -> Solution[int]:
        return backward(self._graph, _ToCome(self._change, self._iteration))


class _Iteration:
    """Where an iteration of the loop over steps begins and ends, and which edges are taken as a rule."""

    def __init__(
        self, graph: ControlFlow, loop: _Loop | None, is_rare: Callable[[Condition], bool], *, ends: bool
    ) -> None:
        self.loop, self.failure, self.ends_with_function = loop, graph.failure, ends
        self.header = graph.block_of(loop) if loop is not None else None
        self.inside = graph.loop(loop) if loop is not None else frozenset()
        self._is_rare = is_rare
        self._rare: dict[int, bool] = {}

    def is_entry(self, source: Block, target: Block) -> bool:
        """Whether an edge leads to the first iteration."""
        return target is self.header and source.index not in self.inside

    def ends(self, source: Block, target: Block) -> bool:
        """Whether an edge leaves the loop in the middle of an iteration."""
        return source.index in self.inside and source is not self.header and target.index not in self.inside

    def is_rare(self, target: Block) -> bool:
        if not target.entered_when:
            return False
        if target.index not in self._rare:
            self._rare[target.index] = any(map(self._is_rare, target.entered_when))
        return self._rare[target.index]


class _Launched(Problem[QueueState]):
    def __init__(self, change: _Changes, iteration: _Iteration, start: QueueState) -> None:
        self._change, self._iteration, self._start = change, iteration, start

    def at_start(self) -> QueueState:
        return self._start

    def join(self, one: QueueState, other: QueueState) -> QueueState:
        return one.join(other)

    def transfer(self, node: ast.AST, state: QueueState) -> QueueState:
        change = self._change(node)
        if change is Change.NOTHING:
            return state
        if change is Change.WAITS:
            return QueueState(0, frozenset({node}))
        launched = state.launched + 1 if change is Change.LAUNCHES else FULL
        return _UNKNOWN if launched >= FULL else state._replace(launched=launched)

    def along(self, source: Block, target: Block, state: QueueState) -> QueueState | None:
        if self._iteration.is_entry(source, target):
            return QueueState(0)
        return None if self._iteration.is_rare(target) else state


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
        change = self._change(node)
        if change is Change.WORKS:
            return FULL
        return min(FULL, state + 1) if change is Change.LAUNCHES else state

    def along(self, source: Block, target: Block, state: int) -> int | None:
        if source is self._iteration.failure:
            return 0
        if self._iteration.is_rare(target):
            return None
        return 0 if self._iteration.ends(source, target) else state
