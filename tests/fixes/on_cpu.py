"""Code that is written for an accelerator, run on a CPU: what it asks of the device is done on the host.

A transfer to the device makes a copy, as it would there, so that what shares memory with what stays the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_TRANSFERS = {torch.Tensor.cuda, torch.Tensor.to, torch.Tensor.pin_memory}


class OnCpu(TorchFunctionMode):  # type: ignore[misc]  # torch is not followed
    """While active, tensors are made and kept on the host, whatever device is named."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func in _TRANSFERS:
            return _transfer(func, args, kwargs)
        if "device" in kwargs:
            kwargs["device"] = _on_host(kwargs["device"])
        return func(*args, **kwargs)


def _transfer(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    tensor = args[0]
    if func is not torch.Tensor.to:
        return tensor.clone()
    named = [*args[1:], kwargs.get("device")]
    moves = any(_on_host(value) is not value for value in named)
    args = (tensor, *(_on_host(value) for value in args[1:]))
    if "device" in kwargs:
        kwargs["device"] = _on_host(kwargs["device"])
    result = func(*args, **kwargs)
    return tensor.clone() if moves and result is tensor else result


def _on_host(value: Any) -> Any:
    """The host instead of a device that is named; everything else as it is."""
    named = isinstance(value, torch.device) or (isinstance(value, str) and value.split(":")[0] in {"cuda", "mps"})
    return torch.device("cpu") if named and torch.device(value).type in {"cuda", "mps"} else value
