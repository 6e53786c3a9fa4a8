"""Which host memory is page-locked, and which was made by the program's own line and then moved to the device.

Both are remembered on the storage's Python object, which lives as long as the memory does and is shared by its views.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from types import FrameType

    from perflint.observe.recording.recorder import Recorder

_PINNED, _MADE = "_perflint_pinned", "_perflint_made"


def pin(tensor: Any) -> Any:
    """Take the memory of a host tensor for page-locked."""
    setattr(tensor.untyped_storage(), _PINNED, True)
    return tensor


def is_pinned(tensor: Any) -> bool:
    return not tensor.is_cuda and getattr(tensor.untyped_storage(), _PINNED, False)


def made(recorder: Recorder, tensor: Any, frame: FrameType) -> None:
    """The program allocated this host tensor at `frame`, in the step that runs.

    What a loader makes is data, which comes from the host: workers make it unseen, and without them it is no other.
    """
    place = recorder.place(frame)[0]
    if place.phase != "data":
        storage = tensor.untyped_storage()
        setattr(storage, _MADE, (place, recorder.index, storage.nbytes()))


def follow(tensor: Any, copy: Any) -> None:
    """`copy` has on the host the values of `tensor`, which the program may have allocated there."""
    if tensor.layout is torch.strided and not (tensor.is_cuda or copy.is_cuda):
        known = getattr(tensor.untyped_storage(), _MADE, None)
        if known is not None:
            setattr(copy.untyped_storage(), _MADE, known)


def report_allocation(recorder: Recorder, tensor: Any) -> None:
    """Record the allocation of a host tensor that goes to the device in the step that made it, once."""
    storage = tensor.untyped_storage()
    known = getattr(storage, _MADE, None)
    if known is None:
        return
    delattr(storage, _MADE)
    place, step, size = known
    if step == recorder.index:
        recorder.count("host allocation", "host-allocation", place, False, size=size)
