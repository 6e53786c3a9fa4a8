"""Whether calls are bimodal, such as a slow path in every second one: from their times to two groups. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

#: Fewer calls than this show no modes.
_FEWEST = 12
#: The smaller mode holds at least so many calls, and this share of them.
_FEWEST_OF_A_MODE, _SMALLEST_SHARE = 3, 0.01
#: The slow mode takes at least this many times as long.
_APART = 1.2
#: The modes lie this many standard deviations of a mode apart. Halves of one bell lie 2.7, of an even spread 3.5 apart.
_DISTANCE = 5.0


@dataclass(frozen=True, slots=True)
class Modes:
    """`share` of the calls takes `ratio` times as long as the others."""

    share: float
    ratio: float

    def __str__(self) -> str:
        """`50 % of its calls take 3.1x as long as the others`."""
        return f"{self.share:.0%} of its calls take {self.ratio:.2g}x as long as the others"


def modes_of(times: Sequence[float]) -> Modes | None:
    """Split `times` (seconds of single calls) where two groups differ most; None where they are no groups."""
    logs = sorted(math.log(time) for time in times if time > 0)
    count = len(logs)
    if count < _FEWEST:
        return None
    sums = [0.0, *itertools.accumulate(logs)]
    squares = [0.0, *itertools.accumulate(value * value for value in logs)]
    fewest = max(_FEWEST_OF_A_MODE, math.ceil(_SMALLEST_SHARE * count))

    def means(split: int) -> tuple[float, float]:
        return sums[split] / split, (sums[count] - sums[split]) / (count - split)

    def between(split: int) -> float:
        low, high = means(split)
        return split * (count - split) * (high - low) ** 2

    split = max(range(fewest, count - fewest + 1), key=between)
    low, high = means(split)
    within = (squares[count] - split * low**2 - (count - split) * high**2) / count
    if high - low < max(math.log(_APART), _DISTANCE * math.sqrt(max(within, 0.0))):
        return None
    slow = sum(math.exp(value) for value in logs[split:]) / (count - split)
    quick = sum(math.exp(value) for value in logs[:split]) / split
    return Modes((count - split) / count, slow / quick)
