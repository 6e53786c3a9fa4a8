"""What each line's waits cost: the step as it is, less the step without them. Modelled, on one accelerator."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from perflint.observe.model.hardware import Hardware
from perflint.observe.model.replay import Bound, Replay
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
    return _step_time(Replay(timed(events, on)), on)


def _step_time(replay: Replay, on: Hardware) -> StepTime:
    host, device, copies = replay.busy
    return StepTime(
        on.key,
        replay.period() / 1000,
        replay.freely() / 1000,
        host / 1000,
        device / 1000,
        copies / 1000,
        replay.bound_by(),
    )


def gains(events: Sequence[Event], on: Hardware, key: Callable[[Event], K]) -> list[Gain[K]]:
    """What each line's waits cost, the dearest first. `key` says which line an event is of.

    In O(operations + waits log waits). Of more than `MOST_LINES` lines, the rest are left out.
    """
    operations = timed(events, on)
    lines: dict[K, list[int]] = {}
    for index, (event, operation) in enumerate(zip(events, operations)):
        if operation.waits:
            lines.setdefault(key(event), []).append(index)
    kept = dict(sorted(lines.items(), key=lambda item: -len(item[1]))[:MOST_LINES])
    replay, bare = Replay(operations), Replay(operations)
    whole = replay.period()
    alone = {line: whole - replay.without(waits) for line, waits in kept.items()}
    last = _last(bare, kept, lines)
    together: dict[K, float] = {}
    for line in sorted(kept, key=lambda line: (-round(alone[line], 6), -round(last[line], 6))):
        together[line] = whole - replay.remove(kept[line])
    return [
        Gain(line, len(kept[line]), _ms(alone[line]), _ms(last[line]), _ms(gained)) for line, gained in together.items()
    ]


def _last(replay: Replay, kept: Mapping[K, list[int]], lines: Mapping[K, list[int]]) -> dict[K, float]:
    """What each line's waits add to a step that has no others."""
    free = replay.remove(index for waits in lines.values() for index in waits)
    return {line: replay.only(waits) - free for line, waits in kept.items()}


def _ms(microseconds: float) -> float:
    """Without the dust of floating-point sums."""
    return max(round(microseconds / 1000, 9), 0.0)
