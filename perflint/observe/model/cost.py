"""What each line's waits cost: the step as it is, less the step without them. Modelled, on one accelerator."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from perflint.observe.model.hardware import Hardware
from perflint.observe.model.replay import Bound, Matrix, Replay
from perflint.observe.model.times import timed
from perflint.observe.trace import Event

K = TypeVar("K", bound=Hashable)

#: Of more lines that wait, those with the most waits are replayed one by one.
MOST_LINES = 2000


@dataclass(frozen=True, slots=True)
class Gain(Generic[K]):
    """What the step gains without the waits of one line. Milliseconds, modelled.

    `alone_ms`: with all other waits in place; 0 for one that is hidden behind another. `last_ms`: were it the only one
    left. `together_ms`: with all lines before it in the list gone as well. `waits` is their number per step.
    """

    key: K
    waits: int
    alone_ms: float
    last_ms: float
    together_ms: float


@dataclass(frozen=True, slots=True)
class StepTime:
    """One step on one accelerator. Milliseconds, modelled.

    `without_waits_ms` is the step with none of its waits. The host is idle for `step_ms - host_ms`, the device for
    `step_ms - device_ms`; `copies_ms` is the part of `device_ms` that copies take.
    """

    hardware: str
    step_ms: float
    without_waits_ms: float
    host_ms: float
    device_ms: float
    copies_ms: float
    bound_by: Bound

    def share(self, gain_ms: float) -> float:
        """Of the step, from 0 to 1."""
        return gain_ms / self.step_ms if self.step_ms else 0.0


def step_time(events: Sequence[Event], on: Hardware) -> StepTime:
    return Costs(events, on, _one).time


def _one(_event: Event) -> None:
    return None


class Costs(Generic[K]):
    """What the waits of any lines cost in one step. `key` says which line an event is of.

    Made in O(operations); a question takes O(waits asked about, times the logarithm of all).
    """

    def __init__(self, events: Sequence[Event], on: Hardware, key: Callable[[Event], K]) -> None:
        operations = timed(events, on)
        self.waits: dict[K, list[int]] = {}
        for index, (event, operation) in enumerate(zip(events, operations)):
            if operation.waits:
                self.waits.setdefault(key(event), []).append(index)
        self._replay = Replay(operations)
        self._bare = self._replay.bare()
        self._free = self._bare.period()
        self._whole = self._replay.period()
        host, device, copies = self._replay.busy
        self.time = StepTime(
            on.key,
            self._whole / 1000,
            self._replay.freely() / 1000,
            host / 1000,
            device / 1000,
            copies / 1000,
            self._replay.bound_by(),
        )

    def alone_ms(self, lines: Iterable[K]) -> float:
        """What the step gains without the waits of `lines`, all others in place."""
        return _ms(self._whole - self._replay.without(self._of(lines)))

    def last_ms(self, lines: Iterable[K]) -> float:
        """What the waits of `lines` add to a step that has no others."""
        return _ms(self._bare.only(self._of(lines)) - self._free)

    def _of(self, lines: Iterable[K]) -> list[int]:
        return [index for line in dict.fromkeys(lines) for index in self.waits.get(line, ())]

    def gains(self) -> list[Gain[K]]:
        """Every line that waits, the dearest first."""
        kept = sorted(self.waits, key=lambda line: -len(self.waits[line]))[:MOST_LINES]
        alone = {line: self.alone_ms([line]) for line in kept}
        last = {line: self.last_ms([line]) for line in kept}
        ordered = sorted(kept, key=lambda line: (-alone[line], -last[line]))
        together: dict[K, float] = {}
        removed: list[tuple[int, Matrix]] = []
        for line in ordered:
            removed += self._replay.taken(self.waits[line])
            together[line] = _ms(self._whole - self._replay.period())
        self._replay.put_back(removed)
        return [Gain(line, len(self.waits[line]), alone[line], last[line], together[line]) for line in ordered]


def gains(events: Sequence[Event], on: Hardware, key: Callable[[Event], K]) -> list[Gain[K]]:
    """What each line's waits cost, the dearest first. `key` says which line an event is of.

    In O(operations + waits log waits). Of more than `MOST_LINES` lines that wait, the rest are left out.
    """
    return Costs(events, on, key).gains()


def _ms(microseconds: float) -> float:
    """Without the dust of floating-point sums."""
    return max(round(microseconds / 1000, 9), 0.0)
