"""The accelerators that a step can be replayed on: what their makers publish, and what the model assumes besides.

Peaks are dense (without structured sparsity) and are those of the data sheets. Nothing reaches them, so the model
divides by what large kernels usually reach of them (`Hardware.reached_flops`, `reached_bandwidth`). Those shares and
the host's times are assumptions: no data sheet has them, and they were not measured for this table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from perflint.errors import PerflintError

_TERA = 1e12
_GIGA = 1e9


@dataclass(frozen=True, slots=True)
class Source:
    """Where a figure is published (`document`), and the page on which it was read."""

    document: str
    read_at: str


@dataclass(frozen=True, slots=True)
class Hardware:
    """One accelerator, and the host in front of it.

    `peaks` are floating-point (for `int8` integer) operations a second by type. `bandwidth` is that of the device's
    memory, `bus` of PCI Express in one direction, both in bytes a second. `memory` is in bytes. `dispatch_us` is what
    an eager operation takes the host, Python included, `launch_us` each further kernel of the same operation,
    `wait_us` a wait that finds nothing to wait for. `floor_us` is the least time between the starts of two kernels.
    `host_copy` is how fast the host copies in its own memory, in bytes a second: pageable memory is copied once more.
    `sources` are by name of the figure, those of single peaks by their type.
    """

    key: str
    name: str
    cuda_name: str
    capability: tuple[int, int]
    multiprocessors: int
    memory: int
    peaks: Mapping[str, float]
    bandwidth: float
    bus: float
    sources: Mapping[str, Source]
    dispatch_us: float = 8.0
    launch_us: float = 3.0
    floor_us: float = 2.0
    wait_us: float = 5.0
    host_copy: float = 10 * _GIGA
    reached_flops: float = 0.7
    reached_bandwidth: float = 0.8

    def peak(self, dtype: str) -> float:
        """Operations a second for `dtype`; those of float32 for a type that the table does not have."""
        return self.peaks.get(dtype, self.peaks["float32"])


_A100 = Source(
    "NVIDIA A100 Tensor Core GPU datasheet (A100 80GB SXM)", "https://glennklockwood.com/garden/processors/A100"
)
_H100 = Source("NVIDIA H100 Tensor Core GPU datasheet (H100 SXM)", "https://glennklockwood.com/garden/processors/h100")
_H200 = Source("NVIDIA H200 Tensor Core GPU datasheet (H200 SXM)", "https://aiwiki.ai/wiki/nvidia_h200")
_L4 = Source(
    "NVIDIA L4 Tensor Core GPU datasheet: tensor cores, memory", "https://grokipedia.com/page/NVIDIA_L4_vs_L40S"
)
_L4_TF32 = Source(
    "NVIDIA L4 Tensor Core GPU datasheet: TF32", "https://store.sourcecode.com/en-us/bg-bucket-compare/125/9820"
)
_L4_VECTOR = Source(
    "NVIDIA Ada GPU architecture whitepaper (L4): FP32, FP64",
    "https://fpsbench.com/compare/gpu/nvidia-l4-vs-nvidia-tesla-m40",
)
_T4 = Source("NVIDIA T4 Tensor Core GPU datasheet", "https://sysrqmts.com/en/gpus/nvidia/tesla/t4")
_4090 = Source(
    "NVIDIA Ada GPU architecture whitepaper v2.01 (GeForce RTX 4090)",
    "https://waredb.com/processor/nvidia-geforce-rtx-4090",
)
_PCIE = {
    3: Source(
        "PCI Express 3.0, 16 lanes: computed from 8 GT/s a lane, 128b/130b; the card's interface is from this page",
        "https://sysrqmts.com/en/gpus/nvidia/tesla/t4",
    ),
    4: Source(
        "PCI Express 4.0, 16 lanes: computed from 16 GT/s a lane, 128b/130b; this page says 32 GB/s a direction",
        "https://glennklockwood.com/garden/processors/A100",
    ),
    5: Source(
        "PCI Express 5.0, 16 lanes: computed from 32 GT/s a lane, 128b/130b; this page says 128 GB/s both ways",
        "https://glennklockwood.com/garden/processors/h100",
    ),
}


def _bus(generation: int) -> float:
    """Bytes a second in one direction over 16 lanes."""
    lanes, rate = 16, {3: 8, 4: 16, 5: 32}[generation] * _GIGA
    return lanes * rate * 128 / 130 / 8


def _peaks(**tera: float) -> dict[str, float]:
    """`half` stands for both 16-bit types; a type without tensor cores of its own runs as float32."""
    half = tera.pop("half", None)
    peaks = {name: value * _TERA for name, value in tera.items()}
    if half is not None:
        peaks |= {"float16": half * _TERA, "bfloat16": half * _TERA}
    return peaks


def _sources(vendor: Source, generation: int, **other: Source) -> dict[str, Source]:
    return {"peaks": vendor, "bandwidth": vendor, "bus": _PCIE[generation], **other}


_ALL = (
    Hardware(
        "a100",
        "A100",
        "NVIDIA A100-SXM4-80GB",
        (8, 0),
        108,
        80 * 1024**3,
        _peaks(float64=19.5, float32=19.5, tfloat32=156, half=312, int8=624),
        2039 * _GIGA,
        _bus(4),
        _sources(_A100, 4),
    ),
    Hardware(
        "h100",
        "H100",
        "NVIDIA H100 80GB HBM3",
        (9, 0),
        132,
        80 * 1024**3,
        _peaks(float64=67, float32=67, tfloat32=494.7, half=989.4, float8=1978.9, int8=1978.9),
        3350 * _GIGA,
        _bus(5),
        _sources(_H100, 5),
    ),
    Hardware(
        "h200",
        "H200",
        "NVIDIA H200",
        (9, 0),
        132,
        141 * 1000**3,
        _peaks(float64=67, float32=67, tfloat32=494.7, half=989.4, float8=1978.9, int8=1978.9),
        4800 * _GIGA,
        _bus(5),
        _sources(_H200, 5, peaks=_H100),
    ),
    Hardware(
        "l4",
        "L4",
        "NVIDIA L4",
        (8, 9),
        58,
        24 * 1000**3,
        _peaks(float64=0.47, float32=30.3, tfloat32=60, half=121, float8=242.5, int8=242.5),
        300 * _GIGA,
        _bus(4),
        _sources(_L4, 4, tfloat32=_L4_TF32, float32=_L4_VECTOR),
    ),
    Hardware(
        "t4",
        "T4",
        "Tesla T4",
        (7, 5),
        40,
        16 * 1000**3,
        _peaks(float64=0.254, float32=8.1, float16=65, int8=130),
        320 * _GIGA,
        _bus(3),
        _sources(_T4, 3),
    ),
    Hardware(
        "rtx4090",
        "RTX 4090",
        "NVIDIA GeForce RTX 4090",
        (8, 9),
        128,
        24 * 1024**3,
        _peaks(float64=1.29, float32=82.6, tfloat32=82.6, half=165.2, float8=330.3, int8=660.6),
        1008 * _GIGA,
        _bus(4),
        _sources(_4090, 4),
    ),
)

HARDWARE: Mapping[str, Hardware] = {one.key: one for one in _ALL}
DEFAULT = "h100"


def hardware(key: str) -> Hardware:
    """The accelerator of that name (`h100`, `RTX 4090`). Raises PerflintError naming those there are."""
    found = HARDWARE.get(key.lower().replace(" ", "").replace("-", "").replace("_", ""))
    if found is None:
        raise PerflintError(f"no hardware model {key!r}; there are {', '.join(HARDWARE)}")
    return found


def nearest(device_name: str) -> Hardware | None:
    """The accelerator that calls itself `device_name` ("NVIDIA H100 80GB HBM3"), None if the table has none such."""
    said = set(re.findall(r"[a-z0-9]+", device_name.lower()))
    return next((one for one in _ALL if said.issuperset(one.name.lower().split())), None)
