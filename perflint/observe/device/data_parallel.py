"""What `torch.nn.DataParallel` asks C++ for, as it is with the one device that there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from perflint.observe.device.patches import Patches


def install(patches: Patches) -> None:
    """Replace the functions of `torch._C` that `torch.nn.parallel.comm` calls."""
    patches.set(torch._C, "_scatter", _scatter)
    patches.set(torch._C, "_gather", _gather)
    patches.set(torch._C, "_broadcast", _broadcast)
    patches.set(torch._C, "_broadcast_coalesced", _broadcast_coalesced)


def _scatter(tensor: Any, devices: Sequence[int], *_more: Any) -> tuple[Any, ...]:
    _one(devices)
    return (tensor.to("cuda", non_blocking=True),)


def _gather(tensors: Sequence[Any], dim: int, destination: int | None = None) -> Any:
    gathered = torch.cat(list(tensors), dim) if len(tensors) > 1 else tensors[0]
    return gathered.cpu() if destination == -1 else gathered


def _broadcast(tensor: Any, devices: Sequence[int]) -> tuple[Any, ...]:
    _one(devices)
    return (tensor.to("cuda"),)


def _broadcast_coalesced(tensors: Sequence[Any], devices: Sequence[int], _size: int) -> tuple[tuple[Any, ...], ...]:
    _one(devices)
    return (tuple(one.to("cuda") for one in tensors),)


def _one(devices: Sequence[int]) -> None:
    """Raises RuntimeError for more devices than there are."""
    if len(devices) != 1:
        raise RuntimeError(f"the simulated machine has one GPU, and {len(devices)} were asked for")
