"""Operations that move values or memory: copies, reads by the host, factories, and what else no host kernel does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from perflint.observe import waits
from perflint.observe.device import pinning
from perflint.observe.device.memory import on_host
from perflint.observe.device.operation import CPU, HOST, Kernel, Operation, bytes_of, replace
from perflint.observe.trace import Kind

if TYPE_CHECKING:
    from perflint.observe.device.kernels import Device
    from perflint.observe.recording.recorder import Recorder


def _resize(device: Device, overload: Any) -> Kernel:
    """`resize_`: memory of the device's own does not grow, so that more values get new memory."""

    def resize(tensor: Any, size: Sequence[int], **keywords: Any) -> Any:
        wanted = 1
        for one in size:
            wanted *= one
        stored = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
        if wanted <= stored:
            strides = torch.empty(tuple(size), device="meta").stride()
            return tensor.as_strided_(tuple(size), strides, tensor.storage_offset())
        before = on_host(tensor.as_strided((stored,), (1,), tensor.storage_offset())) if stored else None
        host = torch.empty(tuple(size), dtype=tensor.dtype)
        if before is not None:
            host.view(-1)[:stored].copy_(before)
        replace(tensor, device.memory.adopt(host))
        return tensor

    return resize


def _copy(device: Device, overload: Any) -> Kernel:
    """`copy_`: between the devices, or on the device."""
    del overload

    def copy_(to: Any, source: Any, non_blocking: bool = False) -> Any:
        frame = sys._getframe(1)
        to_device, from_device = to.is_cuda, source.is_cuda
        # `source` may be a view of a tensor in the middle of autograd: only its values are wanted.
        target = on_host(to) if to_device else to
        origin = on_host(source) if from_device else source
        torch.ops.aten.copy_.default.redispatch(CPU, target, origin, False)
        if device.graph is not None:
            device.graph.keep(lambda: torch.ops.aten.copy_.default.redispatch(CPU, target, origin, False), target)
        recorder = device.recorder
        if recorder is None:
            return to
        if to_device and from_device:
            size = bytes_of((to, source))
            recorder.record("aten::copy_", "launch", frame, waits=False, size=size, launches=1 if to.numel() else 0)
            recorder.wrote = True
            return to
        host, other = (source, to) if to_device else (to, source)
        record_copy(recorder, frame, host, other, to_device=to_device, non_blocking=non_blocking)
        recorder.wrote = True
        return to

    return copy_


def record_copy(
    recorder: Recorder, frame: FrameType, host: Any, other: Any, *, to_device: bool, non_blocking: bool
) -> None:
    """A copy between host and device. `host` is the tensor on the host, `other` has the strides of the device's."""
    size = int(host.numel()) * int(host.element_size())
    if not size:
        return  # PyTorch copies nothing then, and waits for nothing (copy_impl in Copy.cpp)
    if to_device:
        pinning.report_allocation(recorder, host)
    pinned = pinning.is_pinned(host) and _without_gaps(host, other)
    blocks = waits.copy_waits(to_device=to_device, non_blocking=non_blocking, pinned=pinned, size=size)
    kind: Kind = "to-device" if to_device else "to-host"
    recorder.record("aten::copy_", kind, frame, waits=blocks, size=size, pinned=pinned)


def _without_gaps(host: Any, other: Any) -> bool:
    """Whether one block of bytes can be copied to another: else the host's part is gathered in pageable memory."""
    if host.is_contiguous() and other.is_contiguous():
        return True
    dense: bool = torch.ops.aten.is_non_overlapping_and_dense(host)
    return dense and host.stride() == other.stride()


def _to_copy(device: Device, overload: Any) -> Kernel:
    """`_to_copy`: another type or layout on the device, or a copy from or to the host (pinned if not blocking)."""

    def to_copy(tensor: Any, **keywords: Any) -> Any:
        frame = sys._getframe(1)
        target = keywords.get("device")
        non_blocking = keywords.pop("non_blocking", False)
        keywords.pop("pin_memory", None)
        if target is not None and target.type not in {"cpu", "cuda"}:
            return overload.redispatch(CPU, tensor, **keywords)
        from_device = tensor.is_cuda
        to_host = target is not None and target.type == "cpu"
        origin, options = on_host(tensor) if from_device else tensor, keywords | {"device": HOST}
        host = overload.redispatch(CPU, origin, **options)
        if device.graph is not None:
            device.graph.keep(lambda: overload.redispatch(CPU, origin, **options), host)
        recorder = device.recorder
        if not from_device:
            if recorder is not None:
                record_copy(recorder, frame, tensor, host, to_device=True, non_blocking=non_blocking)
            return device.memory.adopt(host)
        if to_host:
            if non_blocking:
                pinning.pin(host)
            if recorder is not None:
                record_copy(recorder, frame, host, tensor, to_device=False, non_blocking=non_blocking)
            return host
        result = device.memory.adopt(host)
        if recorder is not None:
            size = bytes_of((tensor, result))
            recorder.record("aten::_to_copy", "launch", frame, waits=False, size=size, launches=1)
        return result

    return to_copy


def _scalar(device: Device, overload: Any) -> Kernel:
    """A value read by the host."""
    redispatch = overload.redispatch

    def local_scalar_dense(tensor: Any) -> Any:
        value = redispatch(CPU, on_host(tensor))
        if device.recorder is not None:
            device.recorder.record(
                "aten::_local_scalar_dense", "read", sys._getframe(1), waits=True, size=tensor.element_size()
            )
        return value

    return local_scalar_dense


def _factory(device: Device, overload: Any) -> Kernel:
    """`empty` and `empty_strided`: memory of the device."""
    redispatch = overload.redispatch

    def factory(*arguments: Any, **keywords: Any) -> Any:
        keywords["device"] = HOST
        keywords.pop("pin_memory", None)
        return device.memory.adopt(redispatch(CPU, *arguments, **keywords))

    return factory


def _grouped_mm(device: Device, overload: Any) -> Kernel:
    """One kernel for bfloat16 on compute capabilities 9.0 and 10.0; else a loop that reads the offsets on the host."""
    whole = Operation(device, overload)
    redispatch = overload.redispatch

    def grouped_mm(*arguments: Any, **keywords: Any) -> Any:
        if arguments[0].dtype is torch.bfloat16 and torch.cuda.get_device_capability()[0] in {9, 10}:
            return whole(*arguments, **keywords)
        return redispatch(CPU, *arguments, **keywords)

    return grouped_mm


def _pin(device: Device, overload: Any) -> Kernel:
    def refuse(tensor: Any, device_: Any = None) -> Any:
        raise RuntimeError(
            f"cannot pin 'torch.cuda.{tensor.type().rpartition('.')[2]}' only dense CPU tensors can be pinned"
        )

    return refuse


def _stream(device: Device, overload: Any) -> Kernel:
    return lambda *_arguments, **_keywords: None


SPECIAL: dict[str, Callable[[Device, Any], Kernel]] = {
    "resize_": _resize,
    "copy_": _copy,
    "_to_copy": _to_copy,
    "_local_scalar_dense": _scalar,
    "empty": _factory,
    "empty_strided": _factory,
    "_grouped_mm": _grouped_mm,
    "_pin_memory": _pin,
    "record_stream": _stream,
}
