"""Dominator trees of control-flow graphs, forwards or backwards (Cooper, Harvey and Kennedy's algorithm)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from perflint.ir.control_flow_blocks import Block


class DominatorTree:
    """Which blocks every path from a root goes through. Blocks that no path reaches are not in it."""

    def __init__(
        self,
        root: Block,
        successors: Callable[[Block], Iterable[Block]],
        predecessors: Callable[[Block], Iterable[Block]],
    ) -> None:
        #: Reverse postorder.
        self.order = _reverse_postorder(root, successors)
        self._parent: dict[int, Block] = {root.index: root}
        self._spans: dict[int, tuple[int, int]] = {}
        rank = {block.index: place for place, block in enumerate(self.order)}
        changed = True
        while changed:
            changed = False
            for block in self.order[1:]:
                parent: Block | None = None
                for item in predecessors(block):
                    if item.index in self._parent:
                        parent = item if parent is None else self._common(parent, item, rank)
                assert parent is not None, "a block of the order has a predecessor before it"
                if self._parent.get(block.index) is not parent:
                    self._parent[block.index] = parent
                    changed = True
        self._number()

    def __contains__(self, block: Block) -> bool:
        return block.index in self._parent

    def dominates(self, block: Block, other: Block) -> bool:
        """Whether every path to `other` goes through `block`, which may be the same."""
        outer, inner = self._spans.get(block.index), self._spans.get(other.index)
        return outer is not None and inner is not None and outer[0] <= inner[0] and inner[1] <= outer[1]

    def span(self, block: Block) -> tuple[int, int]:
        """The first number of the blocks that a block dominates, its own, and the one after the last."""
        return self._spans[block.index]

    def chain(self, block: Block) -> Iterator[Block]:
        """A block and its dominators, nearest first."""
        while block.index in self._parent:
            yield block
            parent = self._parent[block.index]
            if parent is block:
                return
            block = parent

    def _common(self, one: Block, other: Block, rank: dict[int, int]) -> Block:
        while one is not other:
            while rank[one.index] > rank[other.index]:
                one = self._parent[one.index]
            while rank[other.index] > rank[one.index]:
                other = self._parent[other.index]
        return one

    def _number(self) -> None:
        """Give each block the span of numbers of what it dominates, for answers in constant time."""
        children: dict[int, list[Block]] = {}
        for block in self.order[1:]:
            children.setdefault(self._parent[block.index].index, []).append(block)
        count = 0
        starts: dict[int, int] = {}
        stack: list[tuple[Block, bool]] = [(self.order[0], False)]
        while stack:
            block, is_done = stack.pop()
            if is_done:
                self._spans[block.index] = starts[block.index], count
                continue
            starts[block.index] = count
            count += 1
            stack.append((block, True))
            stack += [(child, False) for child in children.get(block.index, ())]


def _reverse_postorder(root: Block, successors: Callable[[Block], Iterable[Block]]) -> list[Block]:
    seen = {root.index}
    found: list[Block] = []
    stack = [(root, iter(successors(root)))]
    while stack:
        block, rest = stack[-1]
        for item in rest:
            if item.index not in seen:
                seen.add(item.index)
                stack.append((item, iter(successors(item))))
                break
        else:
            found.append(block)
            stack.pop()
    found.reverse()
    return found
