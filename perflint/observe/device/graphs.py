"""CUDA graphs: what is captured is kept as calls of the host's kernels, and a replay makes them again.

As on CUDA, a replay reads and writes the memory that the capture saw, is one launch for the host, and a wait inside a
capture is an error. Other than on CUDA, the operations of a capture also run while they are captured.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from perflint.observe.device.kernels import Device
    from perflint.observe.recording.recorder import Recorder
    from perflint.observe.recording.stacks import Place

#: The device whose streams are captured, and the graph that is being captured.
_device: list[Device] = []
_capturing: list[Graph] = []


def install(device: Device) -> None:
    _device[:] = [device]
    _capturing.clear()


def is_capturing() -> bool:
    return bool(_capturing)


class Graph:
    """`torch.cuda.CUDAGraph`."""

    def __init__(self, keep_graph: bool = False) -> None:
        del keep_graph
        self._calls: list[Callable[[], None]] = []
        self._ends: list[Callable[[], None]] = []
        self._totals = _Totals()

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global", **_keywords: Any) -> None:
        """What runs from here on is kept. Raises RuntimeError inside another capture."""
        if _capturing:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
        self.reset()
        _capturing.append(self)
        device = _device[0]
        device.graph = self
        if device.recorder is not None:
            self._totals = _Totals(device.recorder)
            device.recorder.captured = self._ends
            device.recorder = self._totals  # type: ignore[assignment]

    def capture_end(self) -> None:
        """Captured."""
        if _capturing != [self]:
            return
        _capturing.clear()
        device = _device[0]
        device.graph = None
        real = self._totals.recorder
        if real is not None:
            real.captured = None
            device.recorder = real

    def keep(self, run: Callable[[], Any], results: Any) -> None:
        """One operation: `run` makes it again on the host, what it gives is written over `results`."""
        kept = list(_tensors(results))

        def again() -> None:
            for old, new in zip(kept, _tensors(run())):
                if old.numel() and old.data_ptr() != new.data_ptr():
                    old.copy_(new)

        self._calls.append(again)

    def replay(self) -> None:
        """Run what was captured. Steps of optimizers in it end steps."""
        with torch.no_grad():
            for call in self._calls:
                call()
        recorder = _device[0].recorder
        if recorder is not None:
            totals = self._totals
            recorder.record(
                "cudaGraphLaunch",
                "launch",
                sys._getframe(1),
                waits=False,
                size=totals.size,
                launches=1,
                flops=totals.flops,
                dtype=totals.dtype,
            )
        for end in self._ends:
            end()

    def reset(self) -> None:
        """Forget what was captured."""
        self._calls.clear()
        self._ends.clear()
        self._totals = _Totals()

    def pool(self) -> tuple[int, int]:
        return 0, id(self)

    def instantiate(self) -> None:
        """It is ready as it was captured."""

    def enable_debug_mode(self) -> None:
        """There is nothing to debug."""

    def debug_dump(self, debug_path: str) -> None:
        """As above."""


class _Totals:
    """Stands in for the recorder during a capture: adds up what a replay does, and refuses what waits."""

    def __init__(self, recorder: Recorder | None = None) -> None:
        self.recorder = recorder
        self.size = 0
        self.flops = 0.0
        self.dtype = ""

    keeps = sizes = True
    wrote = False

    def place(self, frame: FrameType | None) -> tuple[Place, bool]:
        assert self.recorder is not None
        return self.recorder.place(frame)

    def record(
        self,
        operation: str,
        kind: str,
        frame: FrameType | None,
        *,
        waits: bool,
        size: int = 0,
        flops: float = 0.0,
        dtype: str = "",
        **_more: Any,
    ) -> None:
        self._add(operation, kind, waits, size, flops, dtype)

    def count(
        self,
        operation: str,
        kind: str,
        place: Place,
        waits: bool,
        in_backward: bool = False,
        size: int = 0,
        launches: int = 0,
        flops: float = 0.0,
        dtype: str = "",
        *_more: Any,
    ) -> None:
        self._add(operation, kind, waits, size, flops, dtype)

    def _add(self, operation: str, kind: str, waits: bool, size: int, flops: float, dtype: str) -> None:
        if waits:
            raise RuntimeError(
                f"CUDA error: operation not permitted when stream is capturing ({operation} makes the host wait)"
            )
        if kind == "launch":
            self.size += size
        self.flops += flops
        self.dtype = self.dtype or dtype

    def __getattr__(self, name: str) -> Any:
        return getattr(self.recorder, name)


def _tensors(value: Any) -> Sequence[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [found for one in value for found in _tensors(one)] if isinstance(value, (list, tuple)) else []
