"""The control-flow graph of a function: order, dominators, path conditions. Knows Python only.

Built from the syntax tree when it is first asked for. Questions are about nodes of the function itself: bodies of
nested functions and lambdas have graphs of their own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TypeVar

from perflint.ir.control_flow_blocks import Block, Condition, ScopeNode, build
from perflint.ir.dominance import DominatorTree
from perflint.syntax.walk import walk

__all__ = ["Block", "Condition", "ControlFlow", "Inherited", "ScopeNode", "control_flow"]


Node = TypeVar("Node", bound=ast.AST)


def control_flow(scope: ScopeNode) -> ControlFlow:
    return ControlFlow(scope)


class ControlFlow:
    """Answers about places that no path reaches are negative, as are those about nodes that the graph does not hold."""

    def __init__(self, scope: ScopeNode) -> None:
        self.scope = scope
        self.blocks, self.entry, self.exit, self.failure, self.end, self._places = build(scope)
        self._reached: dict[int, frozenset[int]] = {}
        self._under: dict[int, tuple[Condition, ...]] = {}
        #: Blocks in reverse postorder: those that no path reaches are left out.
        self.order = self.dominators.order

    @cached_property
    def dominators(self) -> DominatorTree:
        return DominatorTree(self.entry, lambda block: block.successors, lambda block: block.predecessors)

    @cached_property
    def post_dominators(self) -> DominatorTree:
        """Of the paths on which nothing raises but `raise` and `assert`."""
        return DominatorTree(
            self.end,
            lambda block: [item for item in block.predecessors if item.handler is not block],
            lambda block: [item for item in block.successors if item is not block.handler],
        )

    # Where a node stands.

    def places(self, node: ast.AST) -> list[tuple[Block, int]]:
        """The blocks in which a node is evaluated, and where in each: several for what stands in a `finally`."""
        return [place for place in self._places.get(id(node), ()) if place[0] in self.dominators]

    def block_of(self, node: ast.AST) -> Block | None:
        """The block in which a node is evaluated as a rule; None where no path reaches it."""
        places = self.places(node)
        return places[-1][0] if places else None

    # Order.

    def dominates(self, first: ast.AST, second: ast.AST) -> bool:
        """Whether `first` has always run where `second` does."""
        earlier, later = self.places(first), self.places(second)
        return bool(later) and all(any(self._dominates(one, other) for one in earlier) for other in later)

    def _dominates(self, one: tuple[Block, int], other: tuple[Block, int]) -> bool:
        return one[1] <= other[1] if one[0] is other[0] else self.dominators.dominates(one[0], other[0])

    def dominating(self, nodes: Iterable[Node]) -> dict[int, Node]:
        """By the id of each of some nodes before which others of them have always run, the earliest of these. All of
        them are asked together: pair by pair it would take the square of their number.
        """
        placed = [(*self.dominators.span(block), place, node) for node in nodes for block, place in self.places(node)]
        placed.sort(key=lambda item: (item[0], item[2]))
        found: dict[int, Node] = {}
        missed: set[int] = set()
        around: list[tuple[int, Node]] = []
        for _, end, _, node in placed:
            while around and around[-1][0] < end:
                around.pop()
            first = next((other for _, other in around if other is not node), None)
            if first is not None:
                found.setdefault(id(node), first)
            else:
                missed.add(id(node))  # or the path by which a `finally` is entered here
            around.append((end, node))
        return {key: node for key, node in found.items() if key not in missed}

    def post_dominates(self, later: ast.AST, earlier: ast.AST) -> bool:
        """Whether `later` always runs after `earlier` has, unless something raises in between."""
        ends, starts = self.places(later), self.places(earlier)
        return bool(starts) and all(any(self._post_dominates(end, start) for end in ends) for start in starts)

    def _post_dominates(self, end: tuple[Block, int], start: tuple[Block, int]) -> bool:
        if end[0] is start[0]:
            return end[1] >= start[1]
        return self.post_dominators.dominates(end[0], start[0])

    def reaches(self, first: ast.AST, second: ast.AST) -> bool:
        """Whether `second` may run after `first` has, in a later iteration of a loop as well."""
        return any(self._reaches(one, other) for one in self.places(first) for other in self.places(second))

    def _reaches(self, one: tuple[Block, int], other: tuple[Block, int]) -> bool:
        return (one[0] is other[0] and one[1] < other[1]) or other[0].index in self._reachable_from(one[0])

    def _reachable_from(self, block: Block) -> frozenset[int]:
        """The indices of the blocks that a path from a block leads to; its own where that is a loop."""
        found = self._reached.get(block.index)
        if found is None:
            seen: set[int] = set()
            stack = list(block.successors)
            while stack:
                item = stack.pop()
                if item.index not in seen:
                    seen.add(item.index)
                    stack += item.successors
            found = self._reached[block.index] = frozenset(seen)
        return found

    def loop(self, node: ast.For | ast.AsyncFor | ast.While) -> frozenset[int]:
        """The indices of the blocks of a loop: its header, and what leads back to it."""
        header = self.block_of(node)
        return frozenset() if header is None else self._natural_loop(header)

    @cached_property
    def loops(self) -> dict[int, frozenset[int]]:
        """By the index of each header, the blocks of its loop."""
        return {
            block.index: self._natural_loop(block)
            for block in self.order
            if any(self.dominators.dominates(block, before) for before in block.predecessors)
        }

    def _natural_loop(self, header: Block) -> frozenset[int]:
        found = {header.index}
        stack = [block for block in header.predecessors if self.dominators.dominates(header, block)]
        while stack:
            block = stack.pop()
            if block.index not in found:
                found.add(block.index)
                stack += block.predecessors
        return frozenset(found)

    def region(self, node: ast.For | ast.AsyncFor | ast.While) -> frozenset[int]:
        """The indices of the blocks that an iteration of a loop may run: those of `loop`, what stands in the body
        before a `break`, a `return` or a `raise`, and where these lead out of the function.
        """
        parts = (part for statement in node.body for part in walk(statement))
        found = {block.index for part in parts for block, _ in self.places(part)} | self.loop(node)
        ends = {self.exit.index, self.failure.index, self.end.index}
        # Blocks that hold nothing stand where paths meet.
        waiting = [self.blocks[index] for index in found]
        while waiting:
            for block in waiting.pop().successors:
                if not block.nodes and block.index not in found and block.index not in ends:
                    found.add(block.index)
                    waiting.append(block)
        return frozenset(found | ends)

    @cached_property
    def ranks(self) -> dict[int, int]:
        """By the index of each block, its place in reverse postorder."""
        return {block.index: rank for rank, block in enumerate(self.order)}

    @cached_property
    def ranks_back(self) -> dict[int, int]:
        """The same of the graph as it is gone through backwards."""
        return {block.index: rank for rank, block in enumerate(self.post_dominators.order)}

    # Conditions.

    def conditions(self, node: ast.AST) -> tuple[Condition, ...]:
        """The tests that must have come out so, when they were last evaluated, for `node` to run: outermost first.

        Those of branches, loops, assertions, comprehensions, conditional expressions, operands to the left of it in
        `and` and `or`, and of all that would have returned, raised or gone on with the next iteration before.
        """
        places = self.places(node)
        if len(places) == 1:
            return self._conditions(places[0][0])
        found: dict[tuple[int, bool], Condition] | None = None
        for block, _ in places:
            here = {(id(test), truth): (test, truth) for test, truth in self._conditions(block)}
            found = here if found is None else {key: item for key, item in found.items() if key in here}
        return tuple(found.values()) if found else ()

    def _conditions(self, block: Block) -> tuple[Condition, ...]:
        passed: list[Block] = []
        found: tuple[Condition, ...] = ()
        for outer in self.dominators.chain(block):
            known = self._under.get(outer.index)
            if known is not None:
                found = known
                break
            passed.append(outer)
        for inner in reversed(passed):
            own = tuple([item for item in inner.entered_when if item not in found])
            found = self._under[inner.index] = found + own
        return found

    def decided_by(self, node: ast.AST) -> tuple[Condition, ...]:
        """The tests that decide by themselves whether `node` runs (its control dependences), with the outcome where it
        does. A test that it depends on through another test is not among them.
        """
        found: dict[tuple[int, bool], Condition] = {}
        post = self.post_dominators
        for block, _ in self.places(node):
            for branch in self.order:
                if not branch.entered_when or not post.dominates(block, branch):
                    continue
                if any(before is block or not post.dominates(block, before) for before in _before(branch)):
                    found.update({(id(test), truth): (test, truth) for test, truth in branch.entered_when})
        return tuple(found.values())


class Inherited:
    """Whether one of the conditions of a node is of a certain sort. Of each condition it is asked once, and blocks have
    what those have that dominate them.
    """

    def __init__(self, graph: ControlFlow, is_such: Callable[[Condition], bool]) -> None:
        self._graph, self._is_such = graph, is_such
        self._known: dict[int, bool] = {}

    def holds(self, node: ast.AST) -> bool:
        places = self._graph.places(node)
        return bool(places) and all(self._of(block) for block, _ in places)

    def _of(self, block: Block) -> bool:
        passed: list[Block] = []
        found = False
        for outer in self._graph.dominators.chain(block):
            known = self._known.get(outer.index)
            if known is not None:
                found = known
                break
            passed.append(outer)
        for inner in reversed(passed):
            found = self._known[inner.index] = found or any(map(self._is_such, inner.entered_when))
        return found


def _before(block: Block) -> list[Block]:
    return [item for item in block.predecessors if item.handler is not block]
