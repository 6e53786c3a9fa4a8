"""The rows of copies between host and device, and which of them wait."""

from __future__ import annotations

from perflint.observe.waits.row import CUDA, NATIVE, Row

_CUDA_COPIES = "https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html"
_CUDA_GUIDE = "https://docs.nvidia.com/cuda/archive/12.8.0/cuda-c-programming-guide/index.html#concurrent-execution-between-host-and-device"

#: Copies from pageable memory to the device up to this size are asynchronous for the host ("a memory block of 64 KB or
#: less"); greater ones are staged, before which the driver may synchronize with the stream, so they count as waits.
STAGED_BYTES = 64 * 1024

COPIES: tuple[Row, ...] = (
    Row(
        "aten::copy_",
        "host to device, `non_blocking=False`",
        waits=True,
        kind="to-device",
        source=CUDA + "Copy.cu",
        example="host.to(x.device)",
    ),
    Row(
        "aten::copy_",
        "host to device, `non_blocking=True`, from pinned memory without gaps (else it is gathered in pageable memory "
        "first)",
        waits=False,
        kind="to-device",
        source=CUDA + "Copy.cu",
        example="host.pin_memory().to(x.device, non_blocking=True)",
    ),
    Row(
        "aten::copy_",
        "host to device, `non_blocking=True`, from pageable memory, up to 64 KB: the driver takes it along at once",
        waits=False,
        kind="to-device",
        source=_CUDA_GUIDE,
        example="host.to(x.device, non_blocking=True)",
    ),
    Row(
        "aten::copy_",
        "host to device, `non_blocking=True`, from pageable memory, more than 64 KB: the driver synchronizes with the "
        "stream and copies to a buffer of its own first",
        waits=True,
        kind="to-device",
        source=_CUDA_COPIES,
        example="torch.zeros(100_000).to(x.device, non_blocking=True)",
    ),
    Row(
        "aten::index",
        "positions on the host index a device tensor: they are copied from pageable memory; a list is made a tensor "
        "on the host first",
        waits=True,
        kind="to-device",
        source=NATIVE + "IndexingUtils.h",
        function="expandTensors",
        example="x[torch.tensor([0, 1])]",
    ),
    Row(
        "aten::index",
        "a mask on the host indexes a device tensor: the host finds the positions, in pinned memory, and copies them "
        "without waiting",
        waits=False,
        kind="to-device",
        source=NATIVE + "IndexingUtils.h",
        function="expandTensors",
        example="x[torch.tensor([True, False, True, False])]",
    ),
    Row(
        "aten::copy_",
        "device to host, `non_blocking=False`",
        waits=True,
        kind="to-host",
        source=CUDA + "Copy.cu",
        example="x.cpu()",
    ),
    Row(
        "aten::copy_",
        "device to host, `non_blocking=True`, to pinned memory (`.to('cpu', non_blocking=True)` makes it so)",
        waits=False,
        kind="to-host",
        source=CUDA + "Copy.cu",
        example="x.to('cpu', non_blocking=True)",
    ),
    Row(
        "aten::copy_",
        "device to host, `non_blocking=True`, to pageable memory",
        waits=True,
        kind="to-host",
        source=_CUDA_COPIES,
        example="host.copy_(x, non_blocking=True)",
    ),
)


def copy_waits(*, to_device: bool, non_blocking: bool, pinned: bool, size: int) -> bool:
    """Whether the host waits for a copy of `size` bytes between host and device. `pinned` is the host's memory."""
    if not non_blocking:
        return True
    if pinned:
        return False
    return not to_device or size > STAGED_BYTES
