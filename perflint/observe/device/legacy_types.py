"""`torch.cuda.FloatTensor` and its like: types of old that make tensors on the device, and that tensors are asked for.

Source: torch/csrc/tensor/python_tensor.cpp and torch/csrc/utils/tensor_new.cpp (legacy_tensor_ctor).
"""

from __future__ import annotations

from typing import Any

import torch

from perflint.observe.device.patches import Patches

_DTYPES: dict[str, Any] = {
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "ByteTensor": torch.uint8,
    "CharTensor": torch.int8,
    "ShortTensor": torch.int16,
    "IntTensor": torch.int32,
    "LongTensor": torch.int64,
    "BoolTensor": torch.bool,
}


class _Legacy(type):
    """The class of these types: calling one makes a tensor; its instances are the device's tensors of its dtype."""

    dtype: Any

    def __call__(cls, *arguments: Any, device: Any = None) -> Any:
        """Of sizes, an uninitialised tensor; of data, a copy on the device."""
        if all(isinstance(one, int) for one in arguments):
            return torch.empty(arguments or (0,), dtype=cls.dtype, device=device or "cuda")
        (given,) = arguments
        if isinstance(given, torch.Size):
            return torch.empty(given, dtype=cls.dtype, device=device or "cuda")
        if isinstance(given, torch.Tensor):
            return given.detach().to(device or "cuda", cls.dtype)
        return torch.tensor(given, dtype=cls.dtype).to(device or "cuda")

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, torch.Tensor) and instance.is_cuda and instance.dtype is cls.dtype


_TYPES = {
    name: _Legacy(name, (), {"dtype": dtype, "__module__": "torch.cuda", "is_cuda": True})
    for name, dtype in _DTYPES.items()
}


def install(patches: Patches) -> None:
    """Put them where programs look for them."""
    for name, made in _TYPES.items():
        patches.set(torch.cuda, name, made)
    plain = torch.Tensor.type
    default = torch.set_default_tensor_type

    def type_(self: Any, dtype: Any = None, non_blocking: bool = False, **keywords: Any) -> Any:
        found = _named(dtype)
        if found is not None:
            return self.to("cuda", found.dtype, non_blocking=non_blocking)
        return plain(self, dtype, non_blocking=non_blocking, **keywords) if dtype is not None else plain(self)

    def set_default_tensor_type(kind: Any) -> None:
        found = _named(kind)
        if found is None:
            default(kind)
            return
        torch.set_default_dtype(found.dtype)
        torch.set_default_device("cuda")

    patches.set(torch.Tensor, "type", type_)
    patches.set(torch, "set_default_tensor_type", set_default_tensor_type)


def _named(kind: Any) -> Any:
    """The type that `kind` is or names, None for those of the host and for dtypes."""
    if isinstance(kind, _Legacy):
        return kind
    if isinstance(kind, str) and kind.startswith("torch.cuda."):
        return _TYPES.get(kind.removeprefix("torch.cuda."))
    return None
