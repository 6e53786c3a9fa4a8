"""What each recorded operation costs on one accelerator: the host's time, the device's time, and whether they meet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from perflint.observe.model.hardware import Hardware
from perflint.observe.trace import Event

_MICRO = 1e6
_COPIES = frozenset({"read", "to-host", "to-device"})


class Timed(NamedTuple):
    """One operation: microseconds of the host, then of the device, and whether the host waits for the device after it.

    `queued` is whether it puts anything into the device's queue, and `copies` whether that is a copy between the two.
    `wait_us` is what the waiting call itself takes the host.
    """

    host_us: float
    device_us: float
    waits: bool
    queued: bool
    copies: bool
    wait_us: float


def timed(events: Iterable[Event], on: Hardware) -> list[Timed]:
    return [_timed(event, on) for event in events]


def _timed(event: Event, on: Hardware) -> Timed:
    wait = on.wait_us if event.waits else 0.0
    if event.kind in _COPIES:
        host, device = _copy(event, on)
        return Timed(_host(event, host), device, event.waits, queued=True, copies=True, wait_us=wait)
    if event.kind == "host-allocation":
        made = on.dispatch_us + event.bytes / on.host_copy * _MICRO
        return Timed(_host(event, made), 0.0, event.waits, queued=False, copies=False, wait_us=wait)
    if event.kind == "synchronize" and not event.launches:
        return Timed(0.0, 0.0, event.waits, queued=False, copies=False, wait_us=wait)
    dispatched = on.dispatch_us + max(event.launches - 1, 0) * on.launch_us
    # A view runs on the host only.
    device = _device(event, on) if event.launches else 0.0
    return Timed(_host(event, dispatched), device, event.waits, event.launches > 0, copies=False, wait_us=wait)


def _host(event: Event, modelled: float) -> float:
    """What was measured, except of a wait: that time is mostly spent waiting, which the replay adds by itself."""
    return modelled if event.host_us is None or event.waits else event.host_us


def _device(event: Event, on: Hardware) -> float:
    computing = event.flops / (on.peak(event.dtype) * on.reached_flops)
    moving = event.bytes / (on.bandwidth * on.reached_bandwidth)
    return max(max(computing, moving) * _MICRO, event.launches * on.floor_us)


def _copy(event: Event, on: Hardware) -> tuple[float, float]:
    """Of host and device. From and to pageable memory the host copies once more, to or from a page-locked buffer."""
    staging = 0.0 if event.pinned else event.bytes / on.host_copy * _MICRO
    return on.dispatch_us + staging, max(event.bytes / (on.bus * on.reached_bandwidth) * _MICRO, on.floor_us)
