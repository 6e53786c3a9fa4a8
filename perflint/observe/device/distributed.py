"""Collectives on the simulated device: gloo moves its tensors, which are in host memory, for any backend."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from perflint.observe.device.memory import on_host
from perflint.observe.device.patches import Patches

if TYPE_CHECKING:
    from perflint.observe.device.kernels import Device

_CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)


def register(device: Device) -> list[Any]:
    """Run each collective on the host's views of its tensors. Gives what has to be kept."""
    if not torch.distributed.is_available():
        return []
    library = torch.library.Library("c10d", "IMPL")
    for full in torch._C._dispatch_get_all_op_names():
        space, _, name = full.partition("::")
        if space != "c10d" or not torch._C._dispatch_has_kernel_for_dispatch_key(full, "CPU"):
            continue
        base, _, overload = name.partition(".")
        library.impl(name, _collective(device, getattr(getattr(torch.ops.c10d, base), overload or "default")), "CUDA")
    return [library]


def install(patches: Patches) -> None:
    """`nccl` is there, and is gloo."""
    distributed = torch.distributed
    if not distributed.is_available():
        return
    from torch.distributed import distributed_c10d

    for name in ("init_process_group", "new_group"):
        with_gloo = _with_gloo(getattr(distributed_c10d, name), 0 if name == "init_process_group" else 2)
        patches.set(distributed, name, with_gloo)
        patches.set(distributed_c10d, name, with_gloo)
    # It asks for the timer of CUDA's events, which a build without CUDA does not have.
    patches.set(torch._C._distributed_c10d.Logger, "set_runtime_stats_and_log", lambda self: None)
    for owner in (distributed, distributed_c10d):
        patches.set(owner, "is_nccl_available", lambda: True)


def _with_gloo(original: Callable[..., Any], position: int) -> Callable[..., Any]:
    def function(*arguments: Any, **keywords: Any) -> Any:
        if len(arguments) > position:
            arguments = (*arguments[:position], "gloo", *arguments[position + 1 :])
        else:
            keywords["backend"] = "gloo"
        keywords.pop("device_id", None)
        keywords.pop("pg_options", None)
        return original(*arguments, **keywords)

    return function


def _collective(device: Device, overload: Any) -> Callable[..., Any]:
    def collective(*arguments: Any, **keywords: Any) -> Any:
        given = [_hosts(one) for one in arguments]
        result = overload.redispatch(_CPU, *given, **keywords)
        if device.recorder is not None:
            device.recorder.record(
                overload._schema.name, "launch", sys._getframe(1), waits=False, launches=1, size=_size(arguments)
            )
        return _finished(result, {id(view): one for one, view in zip(_flat(arguments), _flat(given))})

    return collective


def _finished(result: Any, known: dict[int, Any]) -> Any:
    """What a collective gives: its tensors, and a work whose value they are, as NCCL's is. gloo's are on the host."""
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], torch.ScriptObject)):
        return result
    tensors = _devices(result[0], known)
    result[1].wait()
    value: Any = torch.futures.Future()
    value.set_result(tensors)
    return tensors, torch._C._distributed_c10d._create_work_from_future(value).boxed()


def _hosts(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return on_host(value) if value.is_cuda else value
    return [_hosts(one) for one in value] if isinstance(value, (list, tuple)) else value


def _devices(value: Any, known: dict[int, Any]) -> Any:
    """The program's tensors for the host's views: collectives give back what they were given."""
    if isinstance(value, torch.Tensor):
        return known.get(id(value)) if id(value) in known else _by_address(value, known)
    return type(value)(_devices(one, known) for one in value) if isinstance(value, (list, tuple)) else value


def _by_address(value: Any, known: dict[int, Any]) -> Any:
    return next((one for one in known.values() if one.data_ptr() == value.data_ptr()), value)


def _flat(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [found for one in value for found in _flat(one)] if isinstance(value, (list, tuple)) else []


def _size(value: Any) -> int:
    return sum(int(one.nbytes) for one in _flat(value) if one.is_cuda)
