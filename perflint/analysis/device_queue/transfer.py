"""What running code does to the device's queue, as a transfer function over the number of launches since the last wait.

A lattice of finite height: each number is joined by its maximum, and bottom is code that does not return. Transfers of
pieces of code compose to that of the whole, so functions are summarised by them (`functions`).
"""

from __future__ import annotations

from typing import NamedTuple

from perflint.finding import Hop

__all__ = ["FULL", "NEVER", "NOTHING", "WORK", "Transfer", "launching", "waiting"]

#: So many launches are as good as any number: a wait for them is a wait for the device.
FULL = 6


class Transfer(NamedTuple):
    """`through` are the launches on paths that do not wait, None where every path does; `fresh` those since the last
    wait on paths that wait, None where none does; `total` those on any path, waits or not. All of them at most, and at
    most `FULL`. `wait` is a place that waits last, for people.
    """

    through: int | None
    fresh: int | None
    total: int
    wait: Hop | None = None

    @property
    def empties(self) -> bool:
        """Whether every path waits."""
        return self.through is None and self.fresh is not None

    def then(self, later: Transfer) -> Transfer:
        """The code with other code behind it."""
        if self is NOTHING:
            return later
        if later is NOTHING:
            return self
        if _never(self) or _never(later):
            return NEVER
        fresh = _sum(self.fresh, later.through)
        wait = _first(later.wait if later.fresh is not None else None, self.wait if fresh is not None else None)
        through = _sum(self.through, later.through)
        return Transfer(through, _most(fresh, later.fresh), min(FULL, self.total + later.total), wait)

    def join(self, other: Transfer) -> Transfer:
        """One of the two."""
        if self is other:
            return self
        return Transfer(
            _most(self.through, other.through),
            _most(self.fresh, other.fresh),
            max(self.total, other.total),
            _first(self.wait, other.wait),
        )

    def again(self) -> Transfer:
        """The code once or several times: the least fixed point of `x = self or x then self`."""
        found = self
        while True:
            more = found.join(found.then(self))
            if more == found:
                return found
            found = more


#: Code that does not return; that leaves the queue alone; that launches a good part of a step.
NEVER = Transfer(None, None, 0)
NOTHING = Transfer(0, None, 0)
WORK = Transfer(FULL, None, FULL)


def launching(kernels: int) -> Transfer:
    return Transfer(min(FULL, kernels), None, min(FULL, kernels))


def waiting(place: Hop | None) -> Transfer:
    return Transfer(None, 0, 0, place)


def _never(code: Transfer) -> bool:
    return code.through is None and code.fresh is None


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else min(FULL, one + other)


def _most(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def _first(one: Hop | None, other: Hop | None) -> Hop | None:
    """The first of two places in the order of the program's text."""
    if one is None or other is None or one is other:
        return other if one is None else one
    is_first = (one.path, one.line, one.text) <= (other.path, other.line, other.text)
    return one if is_first else other
