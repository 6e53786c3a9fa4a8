"""One step as it goes in the long run: when host and device are busy and when the host waits. Modelled.

The step is repeated until the clocks have settled, and the last repetition is kept; it may begin with the device still
at work on the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from perflint.observe.model.hardware import Hardware
from perflint.observe.model.times import Timed, timed
from perflint.observe.trace import Event

What = Literal["host", "wait", "device", "copy"]
_REPEATED = 3


class Segment(NamedTuple):
    """Milliseconds from the step's begin. `host` and `wait` are of the host's clock, `device` and `copy` of the
    device's."""

    what: What
    start_ms: float
    end_ms: float


class Wait(NamedTuple):
    """One wait: the site (index), and when the host began and ended to wait."""

    site: int
    start_ms: float
    end_ms: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """`length_ms` is from the step's begin to the end of all that was queued in it."""

    length_ms: float
    segments: tuple[Segment, ...]
    waits: tuple[Wait, ...]


def timeline(events: Sequence[Event], on: Hardware, resolution: int = 600) -> Timeline:
    """Segments nearer to each other than a part in `resolution` of the step are drawn as one."""
    operations = timed(events, on)
    host = device = 0.0
    for _ in range(_REPEATED - 1):
        host, device = _run(operations, host, device, [], [])
    spans: list[Segment] = []
    waits: list[tuple[int, float, float]] = []
    begin = host
    host, device = _run(operations, host, device, spans, waits)
    length = max(host, device) - begin
    least = length / resolution
    sites = [event.site for event in events]
    return Timeline(
        length / 1000,
        tuple(_merged(spans, begin, least)),
        tuple(Wait(sites[index], (start - begin) / 1000, (end - begin) / 1000) for index, start, end in waits),
    )


def _run(
    operations: Sequence[Timed],
    host: float,
    device: float,
    spans: list[Segment],
    waits: list[tuple[int, float, float]],
) -> tuple[float, float]:
    """One repetition, in microseconds."""
    for index, one in enumerate(operations):
        spans.append(Segment("host", host, host + one.host_us))
        host += one.host_us
        if one.queued:
            start = max(device, host)
            device = start + one.device_us
            spans.append(Segment("copy" if one.copies else "device", start, device))
        if one.waits:
            end = max(host, device) + one.wait_us
            spans.append(Segment("wait", host, end))
            waits.append((index, host, end))
            host = end
    return host, device


def _merged(spans: Sequence[Segment], begin: float, least: float) -> list[Segment]:
    """Milliseconds from `begin`; of each kind, what nearly touches is one."""
    last: dict[What, tuple[float, float]] = {}
    found: list[Segment] = []
    for what, start, end in spans:
        if end <= start:
            continue
        before = last.get(what)
        if before is not None and start - before[1] <= least:
            last[what] = (before[0], end)
            continue
        if before is not None:
            found.append(_segment(what, before, begin))
        last[what] = (start, end)
    found += [_segment(what, span, begin) for what, span in last.items()]
    return sorted(found, key=lambda one: one.start_ms)


def _segment(what: What, span: tuple[float, float], begin: float) -> Segment:
    return Segment(what, (span[0] - begin) / 1000, (span[1] - begin) / 1000)
