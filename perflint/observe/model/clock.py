"""The two clocks of `replay` while a program runs: when the device would come to a mark in its queue. Modelled."""

from __future__ import annotations

from perflint.observe.model.hardware import Hardware
from perflint.observe.model.times import timed
from perflint.observe.trace import Event


class Clock:
    """Microseconds of host and device since it was made, by the operations it is told of."""

    def __init__(self, on: Hardware) -> None:
        self.on = on
        self.host = 0.0
        self.device = 0.0

    def add(self, event: Event) -> None:
        """The host comes to this operation, and waits for the device where it does."""
        for one in timed((event,), self.on):
            self.host += one.host_us
            if one.queued:
                self.device = max(self.device, self.host) + one.device_us
            if one.waits:
                self.host = max(self.host, self.device) + one.wait_us

    def mark(self) -> float:
        """When the device comes to what is queued now."""
        self.host += self.on.dispatch_us
        self.device = max(self.device, self.host)
        return self.device
