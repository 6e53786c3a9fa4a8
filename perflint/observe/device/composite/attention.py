"""`scaled_dot_product_attention` as CUDA runs it: one fused kernel where one takes these arguments."""

from __future__ import annotations

from typing import Any

import torch

from perflint.observe.device.composite import whole
from perflint.observe.device.kernels import Device
from perflint.observe.device.patches import Patches


def install(device: Device, patches: Patches) -> None:
    functional = torch.nn.functional
    original = functional.scaled_dot_product_attention

    def scaled_dot_product_attention(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        keywords = {"dropout_p": dropout_p, "is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
        if not _fuses(query, key, value, attn_mask):
            if not any(one.is_cuda for one in (query, key, value)):
                return original(query, key, value, attn_mask, **keywords)
            query, key, value = _cast(query, key, value)
            return _apart(query, key, value, attn_mask, keywords)
        query, key, value = _cast(query, key, value)
        name = _kernel_for(query, attn_mask)
        if name is None:
            return _apart(query, key, value, attn_mask, keywords)

        def compute(query: Any, key: Any, value: Any, mask: Any = None) -> Any:
            if mask is not None and mask.is_floating_point():
                mask = mask.to(query.dtype)
            return (original(query, key, value, mask, **keywords),)

        flops = 4.0 * query.numel() * key.shape[-2] * (0.5 if is_causal else 1.0)
        return whole.run(device, name, compute, query, key, value, attn_mask, flops=flops)[0]

    scaled_dot_product_attention.__doc__ = original.__doc__
    patches.set(functional, "scaled_dot_product_attention", scaled_dot_product_attention)
    patches.set(torch._C._nn, "scaled_dot_product_attention", scaled_dot_product_attention)


def _apart(query: Any, key: Any, value: Any, mask: Any, keywords: dict[str, Any]) -> Any:
    """By PyTorch's other operations. Its own choice would ask the device for its properties."""
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(mask.logical_not(), float("-inf"))
    scores = torch.ops.aten._scaled_dot_product_attention_math
    dropout, causal = keywords["dropout_p"], keywords["is_causal"]
    options = {"scale": keywords["scale"], "enable_gqa": keywords["enable_gqa"]}
    return scores(query, key, value, mask, dropout, causal, None, **options)[0]


def _fuses(query: Any, key: Any, value: Any, mask: Any) -> bool:
    """Plain device tensors, outside of transforms that need PyTorch's own operations."""
    tensors = [one for one in (query, key, value, mask) if one is not None]
    return (
        all(type(one) in {torch.Tensor, torch.nn.Parameter} and one.is_cuda and one.dim() >= 2 for one in tensors)
        and query.dim() == 4
        and torch._C._functorch.peek_interpreter_stack() is None
        and not torch._C._is_tracing()
    )


def _cast(*tensors: Any) -> tuple[Any, ...]:
    """As autocast does for the operation as a whole."""
    if not torch.is_autocast_enabled("cuda"):
        return tensors
    dtype = torch.get_autocast_dtype("cuda")
    return tuple(one.to(dtype) if one.is_floating_point() and one.dtype != torch.float64 else one for one in tensors)


def _kernel_for(query: Any, mask: Any) -> str | None:
    """The fused kernel that CUDA would choose, None where it takes the operations apart."""
    backends = torch.backends.cuda
    half = query.dtype in {torch.float16, torch.bfloat16}
    size = query.shape[-1]
    if half and mask is None and size <= 256 and backends.flash_sdp_enabled():
        return "aten::_scaled_dot_product_flash_attention"
    needs_gradient_of_mask = mask is not None and mask.requires_grad
    if query.dtype != torch.float64 and backends.mem_efficient_sdp_enabled() and (size % (8 if half else 4) == 0):
        return "aten::_scaled_dot_product_efficient_attention" if not needs_gradient_of_mask or half else None
    return None
