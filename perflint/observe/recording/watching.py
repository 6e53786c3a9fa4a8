"""Records what happens on a real CUDA device, by a dispatch mode over the whole program."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from perflint.errors import PerflintError
from perflint.observe import waits
from perflint.observe.device.operation import bytes_of
from perflint.observe.device.patches import Patches

if TYPE_CHECKING:
    from perflint.observe.recording.recorder import Recorder
    from perflint.observe.trace import Kind

_SILENT = frozenset("empty empty_strided empty_like new_empty new_empty_strided as_strided view detach alias".split())


class _Watch(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = kwargs or {}
        began = time.perf_counter()
        result = func(*args, **keywords)
        spent = (time.perf_counter() - began) * 1e6
        self._record(func, args, keywords, result, spent)
        return result

    def _record(self, func: Any, args: Any, keywords: Any, result: Any, spent: float) -> None:
        schema = func._schema
        frame = sys._getframe(2)
        base = schema.name.partition("::")[2]
        if base in {"copy_", "_to_copy"} and self._record_copy(base, args, keywords, result, spent):
            return
        if not bytes_of((args, tuple(keywords.values()), result)):
            return
        kind: Kind = "launch"
        blocks, times = False, 1
        rows = waits.rows_of(f"{schema.name}.{schema.overload_name}") or waits.rows_of(schema.name)
        row = waits.row_for(rows, args, keywords)
        if row is not None:
            kind, blocks, times = row.kind, row.waits, row.times
        view = base in _SILENT or any(one.alias_info and not one.alias_info.is_write for one in schema.returns)
        counted = flop_registry.get(func.overloadpacket)
        self.recorder.record(
            schema.name,
            kind,
            frame,
            waits=blocks,
            size=0 if view else bytes_of((args, tuple(keywords.values()), result)),
            launches=0 if view else 1,
            flops=float(counted(*args, **keywords, out_val=result)) if counted is not None else 0.0,
            host_us=spent,
        )
        for _ in range(times - 1):
            self.recorder.record(schema.name, kind, frame, waits=blocks, host_us=0.0)

    def _record_copy(self, base: str, args: Any, keywords: Any, result: Any, spent: float) -> bool:
        source, to = (args[1], args[0]) if base == "copy_" else (args[0], result)
        if source.is_cuda == to.is_cuda:
            return False
        host = source if to.is_cuda else to
        non_blocking = bool(keywords.get("non_blocking", args[2] if base == "copy_" and len(args) > 2 else False))
        pinned = bool(host.is_pinned())
        size = int(host.numel()) * int(host.element_size())
        blocks = waits.copy_waits(to_device=to.is_cuda, non_blocking=non_blocking, pinned=pinned, size=size)
        kind: Kind = "to-device" if to.is_cuda else "to-host"
        self.recorder.record(
            "aten::copy_", kind, sys._getframe(3), waits=blocks, size=size, pinned=pinned, host_us=spent
        )
        return True


@contextmanager
def watching(recorder: Recorder) -> Iterator[None]:
    """While the block runs, operations on the real device are recorded. Raises PerflintError without one."""
    if not torch.cuda.is_available():
        raise PerflintError("--device cuda: PyTorch sees no CUDA device here; --device simulated needs none")
    patches = Patches()
    for owner, name, operation in (
        (torch.cuda, "synchronize", "torch.cuda.synchronize"),
        (torch.cuda, "empty_cache", "torch.cuda.empty_cache"),
        (torch.cuda.Event, "synchronize", "torch.cuda.Event.synchronize"),
        (torch.cuda.Stream, "synchronize", "torch.cuda.Stream.synchronize"),
    ):
        patches.set(owner, name, _reported(recorder, getattr(owner, name), operation))
    threads = torch._C._is_multithreading_enabled()
    torch._C._set_multithreading_enabled(False)  # noqa: FBT003
    try:
        with _Watch(recorder):
            yield
    finally:
        torch._C._set_multithreading_enabled(threads)
        patches.undo()


def _reported(recorder: Recorder, original: Any, operation: str) -> Any:
    def reported(*arguments: Any, **keywords: Any) -> Any:
        recorder.record(operation, "synchronize", sys._getframe(1), waits=True)
        return original(*arguments, **keywords)

    return reported
