"""Moves tensors between the two views of one memory: the program's (`cuda:0`) and the host's, which computes.

Both views share the bytes. They are made through DLPack, whose header names the device: writing the other device's
number there gives a tensor of that device. PyTorch then takes it for a CUDA tensor in every respect (dispatch,
autocast, branches on `is_cuda` in its C++), so that nothing of CUDA's behaviour above the kernels has to be imitated.
"""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass, field
from typing import Any

import torch

_HOST, _CUDA = 1, 2
#: Bytes from the start of a DLManagedTensor to its device: it begins with the pointer to the data.
_TO_DEVICE = 8
_NAME = b"dltensor"

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_at = ctypes.c_int64.from_address
_export = torch._C._to_dlpack
_import = torch._C._from_dlpack


def on_host(tensor: Any) -> Any:
    """The host's view of a device tensor: same bytes, sizes and strides, no graph."""
    capsule = _export(tensor)
    _at(_pointer(capsule, _NAME) + _TO_DEVICE).value = _HOST
    return _import(capsule)


def on_device(tensor: Any) -> Any:
    """The program's view of a host tensor: same bytes, sizes and strides, no graph."""
    capsule = _export(tensor)
    _at(_pointer(capsule, _NAME) + _TO_DEVICE).value = _CUDA
    return _import(capsule)


class _Block(weakref.ref[Any]):
    """One allocation of the device, for as long as its storage is there."""

    __slots__ = ("size",)

    size: int


@dataclass(slots=True)
class Memory:
    """The device's memory, counted in bytes."""

    total: int
    allocated: int = 0
    peak: int = 0
    allocations: int = 0
    _blocks: dict[int, _Block] = field(default_factory=dict)

    def adopt(self, host: Any) -> Any:
        """The device's view of `host`, whose storage is counted as an allocation until it is freed."""
        storage = host.untyped_storage()
        block = _Block(storage, self._freed)
        block.size = size = storage.nbytes()
        self._blocks[id(block)] = block
        self.allocations += 1
        self.allocated += size
        self.peak = max(self.peak, self.allocated)
        return on_device(host)

    def reset_peak(self) -> None:
        self.peak = self.allocated

    def _freed(self, block: Any) -> None:
        if self._blocks.pop(id(block), None) is not None:
            self.allocated -= block.size
