"""Solves dataflow problems over control-flow graphs: states of a lattice, by a worklist, to the least fixed point."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from heapq import heappop, heappush
from typing import Generic, TypeVar

from perflint.ir.control_flow import Block, ControlFlow

State = TypeVar("State")


class Problem(ABC, Generic[State]):
    """What a dataflow analysis computes. States are immutable and compared by `==`; `transfer` and `join` are monotone
    and the lattice is of finite height, so that the solution does not depend on the order of the work.
    """

    @abstractmethod
    def at_start(self) -> State:
        """The state where the function starts (forward) or ends (backward)."""

    @abstractmethod
    def join(self, one: State, other: State) -> State:
        """The state where two paths meet."""

    @abstractmethod
    def transfer(self, node: ast.AST, state: State) -> State:
        """The state on the other side of a node."""

    def along(self, source: Block, target: Block, state: State) -> State | None:
        """The state that an edge hands on, in the direction of the analysis; None where it hands on none."""
        del source, target
        return state


class Solution(Generic[State]):
    """The states of a solved problem. None where no path leads."""

    def __init__(self, graph: ControlFlow, problem: Problem[State], starts: dict[int, State], *, backward: bool):
        self._graph, self._problem, self._starts, self._backward = graph, problem, starts, backward
        self._within: dict[int, list[State]] = {}

    def before(self, node: ast.AST) -> State | None:
        """The state where a node is about to be evaluated, its operands done."""
        return self._joined(node, is_before=True)

    def after(self, node: ast.AST) -> State | None:
        return self._joined(node, is_before=False)

    def entering(self, block: Block) -> State | None:
        """The state where a path comes to a block, in the direction of the analysis."""
        return self._starts.get(block.index)

    def _joined(self, node: ast.AST, *, is_before: bool) -> State | None:
        found: State | None = None
        for block, place in self._graph.places(node):
            if block.index not in self._starts:
                continue
            state = self._inside(block)[place + (not is_before)]
            found = state if found is None else self._problem.join(found, state)
        return found

    def _inside(self, block: Block) -> list[State]:
        """The states before each node of a block and, last, after all of them."""
        known = self._within.get(block.index)
        if known is None:
            known = [self._starts[block.index]]
            for node in reversed(block.nodes) if self._backward else block.nodes:
                known.append(self._problem.transfer(node, known[-1]))
            if self._backward:
                known.reverse()
            self._within[block.index] = known
        return known


def forward(
    graph: ControlFlow,
    problem: Problem[State],
    start: Block | None = None,
    region: frozenset[int] | None = None,
) -> Solution[State]:
    """Solve from the start of the function on, or from the start of one of its blocks. With a `region`, no path is
    followed that leaves these blocks: what is asked of one loop need not go through all that follows it.
    """
    first = graph.entry if start is None else start
    starts: dict[int, State] = {first.index: problem.at_start()}
    ranks = graph.ranks
    work = _Worklist(ranks[first.index])
    while work:
        block = graph.order[work.pop()]
        state = starts[block.index]
        raised = state
        for node in block.nodes:
            state = problem.transfer(node, state)
            if block.handler is not None:
                raised = problem.join(raised, state)
        for successor in block.successors:
            if region is not None and successor.index not in region:
                continue
            given = problem.along(block, successor, raised if successor is block.handler else state)
            if given is not None:
                _meet(problem, starts, successor, given, ranks[successor.index], work)
    return Solution(graph, problem, starts, backward=False)


def backward(graph: ControlFlow, problem: Problem[State], region: frozenset[int] | None = None) -> Solution[State]:
    """Solve from the end of the function back, over paths on which nothing raises but `raise` and `assert`. States are
    those on the far side of each block. With a `region`, all paths that leave it are taken to end there.
    """
    order, ranks = graph.post_dominators.order, graph.ranks_back
    starts: dict[int, State] = {graph.end.index: problem.at_start()}
    work = _Worklist()
    for index in region or ():
        block = graph.blocks[index]
        for successor in block.successors if index in ranks else ():
            if successor.index not in region and successor is not block.handler:  # type: ignore[operator]
                given = problem.along(block, successor, problem.at_start())
                if given is not None:
                    _meet(problem, starts, block, given, ranks[index], work)
    while work:
        block = order[work.pop()]
        state = starts[block.index]
        for node in reversed(block.nodes):
            state = problem.transfer(node, state)
        for predecessor in block.predecessors:
            if predecessor.handler is block or predecessor.index not in ranks:
                continue
            if region is not None and predecessor.index not in region:
                continue
            given = problem.along(predecessor, block, state)
            if given is not None:
                _meet(problem, starts, predecessor, given, ranks[predecessor.index], work)
    return Solution(graph, problem, starts, backward=True)


def _meet(
    problem: Problem[State], starts: dict[int, State], block: Block, state: State, rank: int, work: _Worklist
) -> None:
    """Join a state into that of a block, which is worked on again where that changes it."""
    known = starts.get(block.index)
    joined = state if known is None else problem.join(known, state)
    if known is None or joined != known:
        starts[block.index] = joined
        work.add(rank)


class _Worklist:
    """Ranks of blocks to work on, lowest first, each at most once."""

    def __init__(self, first: int = 0) -> None:
        self._heap, self._held = [first], {first}

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, rank: int) -> None:
        if rank not in self._held:
            self._held.add(rank)
            heappush(self._heap, rank)

    def pop(self) -> int:
        rank = heappop(self._heap)
        self._held.discard(rank)
        return rank
