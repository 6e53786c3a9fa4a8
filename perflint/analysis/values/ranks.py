"""The number of a tensor's dimensions: 0, 1, 2 ..., `SOME` for one or more, None where not known."""

from __future__ import annotations

from collections.abc import Iterable

#: A single number, and at least one dimension.
SCALAR = 0
SOME = -1


def join_ranks(left: int | None, right: int | None) -> int | None:
    """The least that covers both: of 1 and 2 it is `SOME`, of 0 and 1 nothing is known."""
    if left == right:
        return left
    return None if left is None or right is None or SCALAR in (left, right) else SOME


def broadcast(ranks: Iterable[int | None]) -> int | None:
    """The rank of an elementwise result on tensors of these ranks; numbers count as `SCALAR`."""
    given = list(ranks)
    if all(rank is not None and rank >= SCALAR for rank in given):
        return max((rank for rank in given if rank is not None), default=SCALAR)
    return None if all(rank in (None, SCALAR) for rank in given) else SOME


def fewer(rank: int | None, by: int = 1) -> int | None:
    """The rank with so many dimensions taken away: by an index, or by a reduction of one dimension."""
    return rank - by if rank is not None and rank >= by else None


def placed(rank: int | None, by: int | None) -> int | None:
    """The rank of what positions of rank `by` select along the first dimension."""
    return None if rank is None or by is None or rank < 1 or by < SCALAR else rank - 1 + by


def cut(rank: int | None, *, numbers: int, added: int) -> int | None:
    """The rank of `x[:, i, None]`: a number takes a dimension, None adds one, all else is a slice."""
    if rank is None or rank < numbers:
        return SOME if rank == SOME and not numbers else None
    return rank - numbers + added


def more(rank: int | None, by: int = 1) -> int | None:
    """The rank with so many dimensions added: by `unsqueeze`, or by stacking. Of what is not known it is `SOME`."""
    return rank + by if rank is not None and rank >= 0 else SOME
