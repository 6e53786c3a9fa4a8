"""A simulated device in the process of a trial: what the workload's calls make it do, call by call.

Imports torch and `perflint.observe`: for the processes of trials that count instead of measuring.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perflint.verify.counting import Counts

HARDWARE = "h100"


@dataclass
class Counting:
    """Counts calls one by one. What happens between them, such as reading a result, does not count."""

    recorder: Any
    device: Any
    calls: list[Counts] = field(default_factory=list)

    def call(self, function: Callable[[], Any]) -> Any:
        """What `function` returns."""
        self.device.recorder = self.recorder
        self.recorder.end_step()
        known = len(self.recorder.observation(device="simulated", hardware=HARDWARE).totals)
        try:
            result = function()
        finally:
            self.recorder.end_step()
            self.device.recorder = None
        total = self.recorder.observation(device="simulated", hardware=HARDWARE).totals[known]
        self.calls.append(Counts(total.waits, total.launches, total.bytes_to_device, total.bytes_to_host))
        return result


@contextlib.contextmanager
def counting(root: Path) -> Iterator[Counting]:
    """Give this process one CUDA device while the block runs. Raises PerflintError where torch is too old."""
    # A real device, where there is one, is not this one.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    from perflint.observe.device.install import simulated
    from perflint.observe.recording.recorder import Recorder
    from perflint.observe.recording.stacks import Stacks

    recorder = Recorder(Stacks(root.resolve(), []), warmup=0)
    with simulated(HARDWARE, recorder) as device:
        device.recorder = None
        yield Counting(recorder, device)
