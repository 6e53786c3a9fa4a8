"""Verdicts by counts on a simulated device: waits, launches and copied bytes of one step, before and after. Pure.

A wait makes the host stand still until the device has done all that was queued, so waits decide. Where they are the
same, all other counts have to point the same way: what a launch is worth in bytes is not known without a clock.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from perflint.verify.results import Verdict

#: The name of the device, beside those of torch.
SIMULATED = "simulated"


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one step: a call of a bench, or a step of a program. Means over the steps after the first."""

    waits: float
    launches: float
    bytes_to_device: float
    bytes_to_host: float


def counts_of(steps: Sequence[Counts]) -> Counts | None:
    """Of all steps but the first, which warms up, unless it is the only one; None for no step."""
    steady = steps[1:] or steps
    if not steady:
        return None
    return Counts(*(statistics.fmean(getattr(step, name) for step in steady) for name in Counts.__slots__))


def verdict(before: Counts, after: Counts) -> Verdict:
    changes = [getattr(after, name) - getattr(before, name) for name in Counts.__slots__]
    waits, *others = changes
    if waits:
        return Verdict.FEWER if waits < 0 else Verdict.MORE
    if not any(others):
        return Verdict.SAME_COUNTS
    if all(change <= 0 for change in others):
        return Verdict.FEWER
    return Verdict.MORE if all(change >= 0 for change in others) else Verdict.UNDECIDED


def described(before: Counts, after: Counts) -> str:
    """`fewer waits (12 -> 1), more launches (30 -> 31)`; what does not change is left out."""
    counts = [(name, getattr(before, name), getattr(after, name)) for name in Counts.__slots__]
    said = [
        f"{'fewer' if after < before else 'more'} {name.replace('_', ' ')} ({before:,.4g} -> {after:,.4g})"
        for name, before, after in counts
        if before != after
    ]
    return ", ".join(said) or "no wait, launch or copied byte changes"


def to_json(counts: Counts) -> dict[str, float]:
    return asdict(counts)
