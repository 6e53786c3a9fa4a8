"""A fixed piece of work beside every trial: how fast the machine itself is at that moment. Imports nothing heavy."""

from __future__ import annotations

import statistics
import time


def spin() -> float:
    """Seconds of it."""
    return statistics.median(_once() for _ in range(5))


def _once() -> float:
    start = time.perf_counter()
    total = 0
    for number in range(20_000):
        total += number & 7
    return time.perf_counter() - start
