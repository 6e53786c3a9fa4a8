"""What a finding costs beside a step, in three classes: frequency times exposure, limited by what is certain of it.

The classes are told in docs/impact.md: high where a percent of a step or more is plausible and certain, low where it is
less than a thousandth or hidden behind another wait.
"""

from __future__ import annotations

from typing import NamedTuple

from perflint.analysis.device_queue.transfer import FULL
from perflint.finding import Confidence, Impact

__all__ = ["Exposure", "Standing", "impact_of_wait", "limit"]


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


class Standing(NamedTuple):
    """What limits the impact of a finding, whatever one event costs."""

    #: That of the value and of the route together.
    confidence: Confidence
    #: Whether each step pays: the line runs on it, or what it sets lasts.
    costs_every_step: bool
    #: Whether only the contract of a module or a public function makes the line hot, and nothing here trains with it.
    is_promised: bool
    #: Whether a step that trains pays dozens of times, for each sample, for each parameter.
    is_multiplied: bool = False


def limit(standing: Standing) -> Impact:
    """The largest impact that is certain: what is only probable is not high, nor what no step of the program pays; what
    hangs on a guess is low. Cost times certainty counts: what is paid dozens of times need be no more than probable.
    """
    if standing.confidence < Confidence.MEDIUM:
        return Impact.LOW
    if standing.is_multiplied:
        return Impact.HIGH
    if standing.confidence < Confidence.HIGH or not standing.costs_every_step or standing.is_promised:
        return Impact.MEDIUM
    return Impact.HIGH
