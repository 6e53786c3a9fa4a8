"""How long a step takes when it is repeated: two clocks, a queue, and waits that join them.

Each operation moves the host's clock `h` and the device's clock `d`:

- the host dispatches: `h += host`
- the device runs it when it is there and what was queued before is done: `d = max(d, h) + device`
- a wait: `h = max(h, d) + wait`

All three are linear in the algebra of (max, +), so any run of operations is one 2 x 2 matrix, a whole step as well.
A training loop repeats its step, and the host runs ahead of the device over the step's end unless something waits: the
length of a step is how far the clocks advance per repetition in the long run, which is the matrix's eigenvalue, its
greatest mean cycle weight. So one wait at the very end of a step that the device bounds costs little, as on a real one.

Blocks between waits are multiplied once. With the blocks and waits in a tree, leaving out the waits of one line takes
a number of products that grows with the line's own waits and the logarithm of all: the costs of all lines together
are found in O(operations + waits log waits).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from perflint.observe.model.times import Timed

Bound = Literal["host", "device", "copies"]

_NEVER = float("-inf")


class Matrix(NamedTuple):
    """Clocks after from clocks before: `h' = max(hh + h, hd + d)`, `d' = max(dh + h, dd + d)`; microseconds."""

    hh: float
    hd: float
    dh: float
    dd: float

    def then(self, later: Matrix) -> Matrix:
        return Matrix(
            max(later.hh + self.hh, later.hd + self.dh),
            max(later.hh + self.hd, later.hd + self.dd),
            max(later.dh + self.hh, later.dd + self.dh),
            max(later.dh + self.hd, later.dd + self.dd),
        )

    def period(self) -> float:
        """Microseconds that the clocks advance per repetition in the long run.

        That is the greatest mean weight of a cycle. The cycle through both clocks is never greater than the others: the
        way from host to device and the way from device to host meet within a step, so `hd + dh <= hh + dd`.
        """
        return max(self.hh, self.dd)


_NOTHING = Matrix(0.0, _NEVER, _NEVER, 0.0)


class Busy(NamedTuple):
    """Microseconds per step in which host and device have something to do, and of the device's those in copies."""

    host: float
    device: float
    copies: float


class Replay:
    """One step's operations, ready to be replayed without some of its waits."""

    def __init__(self, operations: Sequence[Timed]) -> None:
        self._waits_at: list[int] = []
        blocks: list[Matrix] = []
        block, host, device, copies = _NOTHING, 0.0, 0.0, 0.0
        for index, one in enumerate(operations):
            block = _after(block, one)
            host += one.host_us
            device += one.device_us
            copies += one.device_us if one.copies else 0.0
            if one.waits:
                self._waits_at.append(index)
                blocks.append(block)
                block = _NOTHING
        self._tail = block
        self._blocks = blocks
        self._joins = [_join(operations[index].wait_us) for index in self._waits_at]
        self._numbers = {index: number for number, index in enumerate(self._waits_at)}
        self.busy = Busy(host, device, copies)
        self._tree = _Tree([block.then(join) for block, join in zip(self._blocks, self._joins)])

    def bare(self) -> Replay:
        """The same step without any of its waits, to put single ones in place with `only`."""
        made = copy.copy(self)
        made._tree = _Tree(self._blocks)
        return made

    @property
    def waits(self) -> int:
        return len(self._waits_at)

    def period(self) -> float:
        """Microseconds of the step as it is."""
        return self._tree.product().then(self._tail).period()

    def without(self, events: Iterable[int]) -> float:
        """Microseconds of the step without the waits at these operations (indices); what they queue stays."""
        before = self.taken(events)
        try:
            return self.period()
        finally:
            self.put_back(before)

    def only(self, events: Iterable[int]) -> float:
        """Microseconds of the step as it is now with these waits in place."""
        numbers = [self._numbers[event] for event in events]
        before = [(number, self._tree.leaf(number)) for number in numbers]
        self.put_back((number, self._blocks[number].then(self._joins[number])) for number in numbers)
        try:
            return self.period()
        finally:
            self.put_back(before)

    def taken(self, events: Iterable[int]) -> list[tuple[int, Matrix]]:
        """Remove these waits. Returns what `put_back` needs to undo it."""
        numbers = [self._numbers[event] for event in events]
        before = [(number, self._tree.leaf(number)) for number in numbers]
        self.put_back((number, self._blocks[number]) for number in numbers)
        return before

    def put_back(self, leaves: Iterable[tuple[int, Matrix]]) -> None:
        self._tree.put(leaves)

    def freely(self) -> float:
        """Microseconds of the step without any wait."""
        return max(self.busy.host, self.busy.device)

    def bound_by(self) -> Bound:
        """What the step could not be shorter than, were all its waits gone."""
        if self.busy.host >= self.busy.device:
            return "host"
        return "copies" if self.busy.copies > self.busy.device / 2 else "device"


def _after(block: Matrix, one: Timed) -> Matrix:
    """`block` and then what `one` does before it waits. Written out: it runs for each operation."""
    hh, hd = block.hh + one.host_us, block.hd + one.host_us
    if not one.queued:
        return Matrix(hh, hd, block.dh, block.dd)
    return Matrix(hh, hd, max(hh, block.dh) + one.device_us, max(hd, block.dd) + one.device_us)


def _join(wait_us: float) -> Matrix:
    return Matrix(wait_us, wait_us, _NEVER, 0.0)


class _Tree:
    """Products of matrices in order, with single ones replaced in logarithmic time."""

    def __init__(self, leaves: Sequence[Matrix]) -> None:
        self._size = 1
        while self._size < len(leaves):
            self._size *= 2
        self._nodes = [_NOTHING] * self._size + list(leaves) + [_NOTHING] * (self._size - len(leaves))
        for node in range(self._size - 1, 0, -1):
            self._nodes[node] = self._nodes[2 * node].then(self._nodes[2 * node + 1])

    def leaf(self, number: int) -> Matrix:
        return self._nodes[self._size + number]

    def put(self, leaves: Iterable[tuple[int, Matrix]]) -> None:
        """Replace leaves (by number). What several of them are below is multiplied once."""
        nodes = self._nodes
        above: set[int] = set()
        for number, matrix in leaves:
            nodes[self._size + number] = matrix
            above.add((self._size + number) // 2)
        while above and above != {0}:
            for node in above:
                nodes[node] = nodes[2 * node].then(nodes[2 * node + 1])
            above = {node // 2 for node in above}

    def product(self) -> Matrix:
        return self._nodes[1]
