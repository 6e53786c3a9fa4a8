"""Operations that exist on CUDA only, computed on host tensors: PyTorch's own code chooses them for CUDA tensors.

Each takes the arguments of the operation it is named after, and gives what that gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_aten = torch.ops.aten


def _cudnn_batch_norm(
    value: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, epsilon: float
) -> tuple[Any, ...]:
    out, saved_mean, saved_scale = _aten.native_batch_norm(value, weight, bias, mean, var, training, momentum, epsilon)
    return out, saved_mean, saved_scale, torch.empty(0, dtype=torch.uint8)


def _cudnn_batch_norm_backward(
    value: Any,
    gradient: Any,
    weight: Any,
    mean: Any,
    var: Any,
    saved_mean: Any,
    saved_scale: Any,
    epsilon: float,
    _reserve: Any,
) -> tuple[Any, ...]:
    found: tuple[Any, ...] = _aten.native_batch_norm_backward(
        gradient, value, weight, mean, var, saved_mean, saved_scale, True, epsilon, [True, True, True]
    )
    return found


def _flatten_weight(*_arguments: Any, **_keywords: Any) -> Any:
    """CuDNN keeps the weights in one block; where they are makes no difference to the host."""
    return torch.empty(0)


def _grid_sampler(value: Any, grid: Any) -> Any:
    return _aten.grid_sampler_2d(value, grid, 0, 0, True)


def _grid_sampler_backward(value: Any, grid: Any, gradient: Any) -> tuple[Any, ...]:
    found: tuple[Any, ...] = _aten.grid_sampler_2d_backward(gradient, value, grid, 0, 0, True, [True, True])
    return found


def _affine_grid(theta: Any, *size: int) -> Any:
    return _aten.affine_grid_generator(theta, list(size), True)


def _affine_grid_backward(gradient: Any, *size: int) -> Any:
    return _aten.affine_grid_generator_backward(gradient, list(size), True)


def _rms_norm(value: Any, shape: Any, weight: Any, epsilon: float | None) -> tuple[Any, Any]:
    dims = tuple(range(-len(shape), 0))
    wide = value.float() if value.dtype in {torch.float16, torch.bfloat16} else value
    least = torch.finfo(value.dtype).eps if epsilon is None else epsilon
    scale = torch.rsqrt(wide.pow(2).mean(dims, keepdim=True) + least)
    out = wide * scale
    if weight is not None:
        out = out * weight
    return out.to(value.dtype), scale


def _rms_norm_backward(gradient: Any, value: Any, shape: Any, scale: Any, weight: Any, mask: Any) -> tuple[Any, Any]:
    dims = tuple(range(-len(shape), 0))
    wide, normal = gradient.to(scale.dtype), value.to(scale.dtype) * scale
    inner = wide * weight.to(scale.dtype) if weight is not None else wide
    for_value = scale * (inner - normal * (inner * normal).mean(dims, keepdim=True))
    for_weight = None
    if weight is not None and mask[1]:
        outer = tuple(range(value.dim() - len(shape)))
        for_weight = (wide * normal).sum(outer) if outer else wide * normal
        for_weight = for_weight.to(weight.dtype)
    return for_value.to(value.dtype) if mask[0] else None, for_weight


def _with_dtype(name: str) -> Callable[..., Any]:
    """Products of half precision whose result is wider (`mm.dtype`): the last argument is the result's type."""
    operation = getattr(_aten, name)

    def product(*arguments: Any, **keywords: Any) -> Any:
        *tensors, dtype = arguments
        return operation(*[one.to(dtype) for one in tensors], **keywords)

    return product


#: By name without overload, or with it where the others are the host's too.
EMULATED: dict[str, Callable[..., Any]] = {
    "cudnn_batch_norm": _cudnn_batch_norm,
    "cudnn_batch_norm_backward": _cudnn_batch_norm_backward,
    "_cudnn_rnn_flatten_weight": _flatten_weight,
    "_use_cudnn_ctc_loss": lambda *_arguments, **_keywords: False,
    "_use_miopen_ctc_loss": lambda *_arguments, **_keywords: False,
    "cudnn_grid_sampler": _grid_sampler,
    "cudnn_grid_sampler_backward": _grid_sampler_backward,
    "cudnn_affine_grid_generator": _affine_grid,
    "cudnn_affine_grid_generator_backward": _affine_grid_backward,
    "_fused_rms_norm": _rms_norm,
    "_fused_rms_norm_backward": _rms_norm_backward,
    "mm.dtype": _with_dtype("mm"),
    "bmm.dtype": _with_dtype("bmm"),
    "addmm.dtype": _with_dtype("addmm"),
    "baddbmm.dtype": _with_dtype("baddbmm"),
}

#: Have a kernel on the host and none on CUDA, where they are composed of others or refused.
HOST_ONLY = frozenset(
    """_stack narrow_copy native_channel_shuffle pixel_shuffle pixel_unshuffle to_mkldnn quantize_per_tensor
    histogram _histogramdd_bin_edges _histogramdd_from_bin_cts _histogramdd_from_bin_tensors _add_relu _add_relu_
    _functional_assert_async _spdiags from_file mkldnn_rnn_layer mkldnn_rnn_layer_backward slow_conv3d_forward
    _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward""".split()
)
#: Those that CUDA refuses.
REFUSED = frozenset(
    "histogram _histogramdd_bin_edges _histogramdd_from_bin_cts _histogramdd_from_bin_tensors to_mkldnn".split()
)
