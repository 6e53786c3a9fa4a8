"""What a wait for the device costs beside a step, in three classes: how often it happens, times how far it is exposed.

The classes are told in docs/impact.md: high where a percent of a step or more is plausible, low where it is less than
a thousandth or hidden behind another wait.
"""

from __future__ import annotations

from typing import NamedTuple

from perflint.analysis.device_queue.transfer import FULL
from perflint.finding import Impact

__all__ = ["Exposure", "impact_of_wait"]


class Exposure(NamedTuple):
    """How a wait stands in its step."""

    #: Kernels launched since the last wait, and those that are launched afterwards in the same iteration.
    queued: int
    following: int
    #: Whether it happens several times in a step: in each layer, for each sample, in an inner loop.
    is_repeated: bool
    #: Whether the step trains; evaluation and generation wait for their results in any case.
    trains: bool

    @property
    def is_hidden(self) -> bool:
        """Whether the device idles no longer for it: another wait has just drained the queue, or nothing follows."""
        return self.queued < FULL or self.following == 0


def impact_of_wait(exposure: Exposure) -> Impact:
    if exposure.is_hidden:
        return Impact.LOW
    if exposure.following < FULL:
        return Impact.MEDIUM if exposure.is_repeated and exposure.trains else Impact.LOW
    if not exposure.trains:
        return Impact.MEDIUM if exposure.is_repeated else Impact.LOW
    return Impact.HIGH if exposure.is_repeated else Impact.MEDIUM
