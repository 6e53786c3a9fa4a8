"""One launch that the host computes by several operations, with one launch for its backward."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from perflint.observe.device.kernels import Device
from perflint.observe.device.memory import on_device, on_host
from perflint.observe.device.operation import bytes_of


def run(device: Device, name: str, compute: Callable[..., Sequence[Any]], *tensors: Any, flops: float = 0.0) -> Any:
    """Compute `compute(*host tensors)` (a sequence of tensors) as one launch called `name`.

    `tensors` are on the device, or None. The results are too, and have gradients. Twice differentiating is refused,
    as the libraries' kernels refuse it.
    """
    return _Whole.apply(device, name, compute, flops, *tensors)


class _Whole(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(
        ctx: Any, device: Device, name: str, compute: Callable[..., Sequence[Any]], flops: float, *tensors: Any
    ) -> Any:
        needed = ctx.needs_input_grad[4:]
        hosts = [
            on_host(one).requires_grad_(need and one.is_floating_point()) if one is not None else None
            for one, need in zip(tensors, needed)
        ]
        with torch.enable_grad(), torch.autocast("cpu", enabled=False):
            results = tuple(compute(*hosts))
        ctx.device, ctx.name, ctx.flops = device, name, flops
        ctx.hosts, ctx.results = hosts, results
        ctx.set_materialize_grads(False)
        outs = tuple(device.memory.adopt(one.detach()) for one in results)
        if device.graph is not None:
            raise NotImplementedError(f"{name} cannot be captured in a CUDA graph on a simulated device")
        _record(device, name, (*tensors, *outs), flops)
        return outs

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, *gradients: Any) -> Any:
        wanted = [one for one in ctx.hosts if one is not None and one.requires_grad]
        pairs = [
            (result, on_host(gradient))
            for result, gradient in zip(ctx.results, gradients)
            if gradient is not None and result.requires_grad
        ]
        found = iter(
            torch.autograd.grad(
                [one for one, _ in pairs], wanted, [one for _, one in pairs], allow_unused=True, retain_graph=True
            )
        )
        outs = []
        for one in ctx.hosts:
            gradient = next(found) if one is not None and one.requires_grad else None
            outs.append(ctx.device.memory.adopt(gradient.contiguous()) if gradient is not None else None)
        _record(ctx.device, f"{ctx.name}_backward", outs, 2.5 * ctx.flops)
        return None, None, None, None, *outs


def _record(device: Device, name: str, tensors: Sequence[Any], flops: float) -> None:
    recorder = device.recorder
    if recorder is None:
        return
    first = next((one for one in tensors if one is not None), None)
    dtype = str(first.dtype).removeprefix("torch.") if first is not None else ""
    size = bytes_of(list(tensors)) if recorder.sizes else 0
    recorder.record(name, "launch", sys._getframe(2), waits=False, launches=1, size=size, flops=flops, dtype=dtype)


__all__ = ["on_device", "run"]
