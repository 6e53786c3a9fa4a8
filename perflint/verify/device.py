"""The device that is measured on: CUDA and ROCm, XPU, MPS, or the CPU. Imports torch: for the processes of trials."""

from __future__ import annotations

import contextlib
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from perflint.verify.counting import SIMULATED

KINDS = ("cuda", "xpu", "mps", "cpu")

#: What the two memory figures are.
MEMORY_ON_DEVICE = "peak allocated on the device, in bytes (torch's allocator)"
MEMORY_ON_HOST = "peak resident memory that the calls add to their process, in bytes"
MEMORY_OF_COMMAND = "peak resident memory of the largest process of the command, in bytes"


class DeviceError(Exception):
    """There is no such device here; the message says so."""


def resolve(asked: str) -> str:
    """`auto` becomes the best there is. A name may carry an index: `cuda:1`. Raises DeviceError."""
    if asked == "auto":
        return next(kind for kind in KINDS if is_available(kind))
    if asked == SIMULATED:
        return asked
    kind, colon, index = asked.partition(":")
    if kind not in KINDS or (colon and not index.isdecimal()):
        raise DeviceError(f"no device {asked!r}; known are auto, {', '.join(KINDS)}, {SIMULATED}")
    if not is_available(kind):
        raise DeviceError(f"torch finds no {kind} device here")
    return asked


def is_available(kind: str) -> bool:
    """Whether torch can compute on a kind of device here."""
    import torch

    if kind == "cpu":
        return True
    if kind == "mps":
        return bool(torch.backends.mps.is_available())
    module = getattr(torch, kind, None)
    return bool(module is not None and module.is_available())


class Device:
    """One device: waiting for it, its clock, its memory."""

    def __init__(self, name: str) -> None:
        import torch

        self.name = name
        self.kind = name.partition(":")[0]
        # What is simulated has no clock and no memory of its own: it is the host's.
        self._module: Any = None if self.kind in {"cpu", SIMULATED} else getattr(torch, self.kind)
        if ":" in name and self._module is not None and hasattr(self._module, "set_device"):
            self._module.set_device(int(name.partition(":")[2]))

    @property
    def is_accelerator(self) -> bool:
        return self._module is not None

    def synchronize(self) -> None:
        if self._module is not None:
            self._module.synchronize()

    def stopwatch(self) -> Stopwatch | None:
        """None where there are no device events."""
        if self._module is None:
            return None
        events = getattr(self._module, "event", None) if self.kind == "mps" else self._module
        event = getattr(events, "Event", None)
        return None if event is None else Stopwatch(self, event)

    def reset_peak(self) -> None:
        """Begin to measure the peak of memory anew."""
        if self._module is not None:
            if hasattr(self._module, "reset_peak_memory_stats"):
                self._module.reset_peak_memory_stats()
            return
        # Linux forgets its high-water mark when asked; elsewhere the mark of the whole process is compared.
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")

    def peak(self) -> int | None:
        """Bytes: allocated at the peak on an accelerator, else the most the process ever had in memory."""
        if self._module is None:
            return _host_peak()
        if hasattr(self._module, "max_memory_allocated"):
            return int(self._module.max_memory_allocated())
        if hasattr(self._module, "driver_allocated_memory"):  # MPS keeps no peak of its own
            return int(self._module.driver_allocated_memory())
        return None

    def describe(self) -> dict[str, Any]:
        """For `results.Machine`."""
        import torch

        return {
            "kind": self.kind,
            "name": self._device_name(),
            "torch": str(torch.__version__),
            "versions": list(_versions(self.kind)),
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
        }

    def _device_name(self) -> str:
        if self._module is not None and hasattr(self._module, "get_device_name"):
            return str(self._module.get_device_name())
        if self.kind == SIMULATED:
            return f"an accelerator that is not there, on {_processor()}"
        return _processor()


class Stopwatch:
    """Seconds between two events on the device's own clock."""

    def __init__(self, device: Device, event: Any) -> None:
        self._device = device
        self._start = event(enable_timing=True)
        self._end = event(enable_timing=True)

    def __enter__(self) -> Stopwatch:  # noqa: PYI034 - Self is newer than Python 3.10
        self._start.record()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.record()
        self._device.synchronize()

    @property
    def seconds(self) -> float:
        return float(self._start.elapsed_time(self._end)) / 1000.0


def _host_peak() -> int | None:
    with contextlib.suppress(OSError, StopIteration, ValueError, IndexError):
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024
    try:
        import resource
    except ImportError:  # Windows
        return None
    return maxrss_bytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def maxrss_bytes(value: int) -> int:
    """`ru_maxrss` is in kibibytes, but in bytes on macOS."""
    return int(value) if sys.platform == "darwin" else int(value) * 1024


def _versions(kind: str) -> list[str]:
    import torch

    found = []
    if kind == "cuda":
        if torch.version.hip:
            found.append(f"ROCm {torch.version.hip}")
        elif torch.version.cuda:
            found.append(f"CUDA {torch.version.cuda}")
        driver = _driver(is_rocm=bool(torch.version.hip))
        if driver:
            found.append(f"driver {driver}")
    return found


def _driver(*, is_rocm: bool) -> str:
    command = (
        ["rocm-smi", "--showdriverversion", "--csv"]
        if is_rocm
        else ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    )
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        lines = done.stdout.split("\n")
        return lines[0].strip() if not is_rocm else next((x.split(",")[-1].strip() for x in lines[1:] if x), "")
    return ""


def _processor() -> str:
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        return next(line for line in lines if line.startswith("model name")).partition(":")[2].strip()
    return platform.processor() or platform.machine()
