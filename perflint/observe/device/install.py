"""Makes the pretended device, and takes it away."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import torch

from perflint.errors import PerflintError
from perflint.observe.device import cuda_api, data_parallel, legacy_types, runtime, tensor_api
from perflint.observe.device.kernels import Device
from perflint.observe.device.memory import Memory
from perflint.observe.device.patches import Patches
from perflint.observe.model.hardware import hardware as hardware_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perflint.observe.recording.recorder import Recorder

from contextlib import contextmanager

#: The oldest release whose dispatcher takes what is registered here.
OLDEST = (2, 9)
_devices: list[Device] = []


def require_torch() -> None:
    """Raises PerflintError where PyTorch is too old."""
    version = tuple(int(part) for part in str(torch.__version__).split("+")[0].split(".")[:2])
    if version < OLDEST:
        raise PerflintError(
            f"perflint observe needs PyTorch 2.9 or newer, and this is {torch.__version__}: "
            "pip install 'torch-perflint[observe]'"
        )


def _device() -> Device:
    """The one of this process, registered with the dispatcher."""
    if not _devices:
        require_torch()
        # It makes tables of PyTorch's functions by identity, and every optimizer imports it.
        importlib.import_module("torch._dynamo")
        made = Device(Memory(0))
        made.register()
        _devices.append(made)
    return _devices[0]


@contextmanager
def simulated(
    hardware: str, recorder: Recorder | None, stubs: dict[str, Callable[..., object]] | None = None
) -> Iterator[Device]:
    """While the block runs, this process has one CUDA device. Raises PerflintError for an unknown hardware model, and
    where the block is entered inside another.
    """
    card = hardware_of(hardware)
    device = _device()
    if device.memory.total:
        raise PerflintError("a simulated device is there already: observations cannot be nested")
    device.memory.total = card.memory
    device.stubs = dict(stubs or {})
    device.recorder = recorder
    patches = Patches()
    threads = torch._C._is_multithreading_enabled()
    undo = runtime.install()
    try:
        cuda_api.install(device, card, patches)
        tensor_api.install(device, patches)
        legacy_types.install(patches)
        data_parallel.install(patches)
        # The backward pass runs on the caller's thread, below the frames that called it.
        torch._C._set_multithreading_enabled(False)
        yield device
    finally:
        patches.undo()
        torch._C._set_multithreading_enabled(threads)
        undo()
        device.recorder = None
        device.memory.total = 0
