"""LSTM, GRU and plain recurrent layers as cuDNN runs them: one call for all layers and time steps, one for a cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from perflint.observe.device.composite import whole
from perflint.observe.device.kernels import Device
from perflint.observe.device.patches import Patches

_LAYERS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_CELLS = {"lstm_cell": "aten::_thnn_fused_lstm_cell", "gru_cell": "aten::_thnn_fused_gru_cell"}


def install(device: Device, patches: Patches) -> None:
    from torch import _VF

    for name in _LAYERS:
        patches.set(_VF, name, _whole(device, getattr(_VF, name), "aten::_cudnn_rnn"))
        patches.set(torch, name, _whole(device, getattr(torch, name), "aten::_cudnn_rnn"))
    for name, kernel in _CELLS.items():
        patches.set(_VF, name, _whole(device, getattr(_VF, name), kernel))
        patches.set(torch, name, _whole(device, getattr(torch, name), kernel))


def _whole(device: Device, original: Callable[..., Any], name: str) -> Callable[..., Any]:
    def layer(*arguments: Any) -> Any:
        flat: list[Any] = []
        _flatten(arguments, flat)
        if not any(one.is_cuda for one in flat):
            return original(*arguments)
        refused = next((one for one in flat if not one.is_cuda and one.dtype.is_floating_point), None)
        if refused is not None:
            raise RuntimeError(
                "Input and parameter tensors are not at the same device, found input tensor at cuda:0 and parameter "
                "tensor at cpu"
            )
        flat, arguments = _cast(flat, arguments)
        shape: list[type] = []

        def compute(*hosts: Any) -> Any:
            found = original(*_filled(arguments, iter(hosts)))
            shape.append(type(found))
            return found if isinstance(found, tuple) else (found,)

        # `batch_sizes` of a packed sequence are on the host, and stay there.
        result = whole.run(device, name, compute, *(one if one.is_cuda else whole.on_device(one) for one in flat))
        return tuple(result) if shape[0] is tuple else result[0]

    return layer


def _cast(flat: list[Any], arguments: tuple[Any, ...]) -> tuple[list[Any], tuple[Any, ...]]:
    """As autocast does: the layers are on its list of operations in half precision."""
    if not torch.is_autocast_enabled("cuda"):
        return flat, arguments
    dtype = torch.get_autocast_dtype("cuda")
    cast = [one.to(dtype) if one.is_cuda and one.dtype == torch.float32 else one for one in flat]
    return cast, tuple(_filled(arguments, iter(cast)))


def _flatten(value: Any, found: list[Any]) -> None:
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for one in value:
            _flatten(one, found)


def _filled(value: Any, tensors: Any) -> Any:
    """The same nest with its tensors replaced in order."""
    if isinstance(value, torch.Tensor):
        return next(tensors)
    if isinstance(value, (list, tuple)):
        return type(value)([_filled(one, tensors) for one in value])
    return value
