"""Functions of `torch` that would ask CUDA's C++ for what is not there: pinned memory, generators, storages, attention
and recurrent layers as one call, compilation.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

from perflint.observe.device import distributed, pinning
from perflint.observe.device.composite import attention, recurrent
from perflint.observe.device.kernels import Device
from perflint.observe.device.patches import Patches

#: Make a tensor on the host unless they are told a device.
_FACTORIES = (
    "tensor zeros ones empty full rand randn randint randperm arange linspace logspace eye from_numpy as_tensor "
    "zeros_like ones_like empty_like full_like rand_like randn_like empty_strided"
).split()

#: Give a tensor of another type, on the host where it was.
_CONVERSIONS = "to type float double half bfloat16 bool byte char short int long".split()


def install(device: Device, patches: Patches) -> None:
    """Replace them."""
    from torch.utils._device import _device_constructors

    # Found by identity, once: the table must hold PyTorch's own functions.
    _device_constructors()
    for name in _FACTORIES:
        patches.set(torch, name, _factory(device, getattr(torch, name)))
    patches.set(torch.Tensor, "__new__", staticmethod(_constructor(device)))
    for name in _CONVERSIONS:
        patches.set(torch.Tensor, name, _converting(getattr(torch.Tensor, name)))
    patches.set(torch.Tensor, "pin_memory", _pin_memory)
    patches.set(torch.Tensor, "is_pinned", _is_pinned)
    patches.set(torch.Tensor, "record_stream", lambda self, stream: None)
    patches.set(torch.UntypedStorage, "is_pinned", lambda self, device=None: getattr(self, "_perflint_pinned", False))
    patches.set(torch.UntypedStorage, "_to", _storage_to)
    patches.set(torch.UntypedStorage, "to", _storage_to)
    patches.set(
        torch.UntypedStorage, "cuda", lambda self, device=None, non_blocking=False: _storage_to(self, device="cuda")
    )
    patches.set(torch.UntypedStorage, "clone", _storage_clone(torch.UntypedStorage.clone))
    for name, function in _sizes_of_storages().items():
        patches.set(torch.UntypedStorage, name, function)
    patches.set(torch, "Generator", _generator_class())
    patches.set(torch, "compile", _compile(device))
    distributed.install(patches)
    attention.install(device, patches)
    recurrent.install(device, patches)


def _factory(device: Device, original: Callable[..., Any]) -> Callable[..., Any]:
    """The function, where `pin_memory` needs no CUDA, and what it allocates on the host is known by its line."""

    @functools.wraps(original)
    def factory(*arguments: Any, **keywords: Any) -> Any:
        pinned = keywords.pop("pin_memory", False)
        made = original(*arguments, **keywords)
        if pinned and _is_on_host(made):
            pinning.pin(made)
        _remember(device, made, sys._getframe(1))
        return made

    return factory


def _constructor(device: Device) -> Callable[..., Any]:
    """`torch.Tensor(values)` makes a tensor on the host, as the functions do."""
    original = torch._C.TensorBase.__new__

    def new(cls: Any, *arguments: Any, **keywords: Any) -> Any:
        made = original(cls, *arguments, **keywords)
        if cls is torch.Tensor and not any(isinstance(one, torch.Tensor) for one in arguments):
            _remember(device, made, sys._getframe(1))
        return made

    return new


def _remember(device: Device, made: Any, frame: FrameType) -> None:
    recorder = device.recorder
    if recorder is not None and recorder.keeps and _is_on_host(made) and made.numel():
        pinning.made(recorder, made, frame)


def _is_on_host(made: Any) -> bool:
    return made.layout is torch.strided and made.device.type == "cpu"


def _converting(original: Callable[..., Any]) -> Callable[..., Any]:
    """The method, where what it makes of a tensor on the host is known by the line that allocated that."""

    @functools.wraps(original)
    def converting(self: Any, *arguments: Any, **keywords: Any) -> Any:
        result = original(self, *arguments, **keywords)
        if result is not self and isinstance(result, torch.Tensor):
            pinning.follow(self, result)
        return result

    return converting


def _pin_memory(self: Any, device: Any = None) -> Any:
    """As `Tensor.pin_memory`: itself if it is pinned, else a pinned copy."""
    if self.is_cuda:
        kind = str(self.type()).removeprefix("torch.cuda.")
        raise RuntimeError(f"cannot pin 'torch.cuda.{kind}' only dense CPU tensors can be pinned")
    if pinning.is_pinned(self):
        return self
    copy = self.detach().clone().requires_grad_(self.requires_grad)
    pinning.follow(self, copy)
    return pinning.pin(copy)


def _is_pinned(self: Any, device: Any = None) -> bool:
    return pinning.is_pinned(self)


def _storage_to(self: Any, device: Any = None, non_blocking: bool = False, **_keywords: Any) -> Any:
    """A storage on the other device, or itself."""
    target = torch.device(device) if device is not None else torch.device("cuda")
    if target.type == self.device.type:
        return self
    values = torch.empty(0, dtype=torch.uint8, device=self.device).set_(self)
    return values.to(target, non_blocking=non_blocking).untyped_storage()


def _storage_clone(original: Callable[..., Any]) -> Callable[..., Any]:
    """A copy on the same device: what `copy.deepcopy` of a tensor makes first."""

    def clone(self: Any) -> Any:
        if self.device.type != "cuda":
            return original(self)
        return torch.empty(0, dtype=torch.uint8, device=self.device).set_(self).clone().untyped_storage()

    return clone


def _sizes_of_storages() -> dict[str, Callable[..., Any]]:
    """`resize_`, by which sharded parameters free their memory: the size changes, the bytes stay where they are."""
    resize, nbytes = torch.UntypedStorage.resize_, torch.UntypedStorage.nbytes

    def resized(self: Any, size: int) -> Any:
        if self.device.type != "cuda":
            return resize(self, size)
        whole = nbytes(self)
        if size > whole:
            raise RuntimeError(f"a simulated device cannot let a storage of {whole} bytes grow to {size}")
        self._perflint_size = size
        return self

    def size_of(self: Any) -> int:
        found = getattr(self, "_perflint_size", None)
        return nbytes(self) if found is None else int(found)

    return {"resize_": resized, "size": size_of, "nbytes": size_of, "__len__": size_of}


@functools.cache
def _generator_class() -> type[Any]:
    base = torch.Generator

    class _Like(type(base)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, base)

    class Generator(base, metaclass=_Like):  # type: ignore[misc, valid-type]
        """A generator that says which device it was made for. It draws on the host, which computes."""

        def __new__(cls, device: Any = "cpu") -> Any:
            target = torch.device(device)
            made = super().__new__(cls, "cpu" if target.type == "cuda" else target)
            if target.type == "cuda":
                made.perflint_device = torch.device("cuda", target.index or 0)
            return made

        @property
        def device(self) -> Any:
            return getattr(self, "perflint_device", None) or base.device.__get__(self)

    Generator.__qualname__ = "Generator"
    Generator.__module__ = "torch"
    return Generator


def _compile(device: Device) -> Callable[..., Any]:
    """`torch.compile` gives the model back as it is: what is observed is the program's own operations."""

    def compile_(model: Any = None, **_keywords: Any) -> Any:
        recorder = device.recorder
        said = "torch.compile was passed over: the operations are those of the program without it"
        if recorder is not None and said not in recorder.errors:
            recorder.errors.append(said)
        if model is None:
            return lambda inner: inner
        return model

    return compile_
