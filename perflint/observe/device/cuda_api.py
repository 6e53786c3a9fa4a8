"""`torch.cuda` and what asks it, as a program finds them on a machine with one GPU."""

from __future__ import annotations

import os
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import contextmanager
from types import FrameType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from perflint.observe.device import graphs
from perflint.observe.device.kernels import Device
from perflint.observe.device.patches import Patches
from perflint.observe.model.clock import Clock
from perflint.observe.model.hardware import Hardware

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEVICE = torch.device("cuda", 0)
_CUDA_VERSION = "12.8"
_CUDNN_VERSION = 91002
#: Bytes of shared memory of a multiprocessor by compute capability (CUDA C++ Programming Guide).
_SHARED_MEMORY = {(7, 5): 65_536, (8, 0): 167_936, (8, 9): 102_400, (9, 0): 233_472}


class Stream:
    """A queue of the pretended device. What is queued has run at once, so that order between queues always holds."""

    def __init__(self, device: Any = None, priority: int = 0, **_keywords: Any) -> None:
        self.device = _DEVICE
        self.device_index = 0
        self.device_type = 1
        self.priority = priority
        self.stream_id = id(self)
        self.cuda_stream = id(self)
        self._as_parameter_ = id(self)

    def synchronize(self) -> None:
        _synchronized("torch.cuda.Stream.synchronize")

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return graphs.is_capturing()

    def wait_stream(self, stream: Any) -> None:
        """Order between queues, which holds already."""

    def wait_event(self, event: Any) -> None:
        """As `wait_stream`."""

    def record_event(self, event: Any = None) -> Any:
        made = Event() if event is None else event
        made.record(self)
        return made

    def __enter__(self) -> Any:
        _state.streams.append(self)
        return self

    def __exit__(self, *_error: object) -> None:
        _state.streams.pop()


class Event:
    """A mark in a queue. Its time is that of the model, by the operations that are recorded; without a recorder it is
    the host's.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, **_keywords: Any) -> None:
        self.enable_timing = enable_timing
        self.blocking = blocking
        self.device = _DEVICE
        self.cuda_event = id(self)
        self._time: float | None = None

    def record(self, stream: Any = None) -> None:
        if self.enable_timing:
            self._time = _now()

    def wait(self, stream: Any = None) -> None:
        """Order between queues, which holds already."""

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: Any) -> float:
        """Milliseconds between the two. Raises RuntimeError for events that were not recorded with a time."""
        if not (self.enable_timing and end.enable_timing):
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        if self._time is None or end._time is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        _say_modelled(sys._getframe(1))
        return float(end._time - self._time) / 1000.0

    def synchronize(self) -> None:
        _synchronized("torch.cuda.Event.synchronize")

    def ipc_handle(self) -> bytes:
        return b""


class _Context:
    """`torch.cuda.stream(s)` and `torch.cuda.device(d)`."""

    def __init__(self, what: Any = None) -> None:
        self.what = what

    def __enter__(self) -> Any:
        if isinstance(self.what, Stream):
            _state.streams.append(self.what)
        return self

    def __exit__(self, *_error: object) -> None:
        if isinstance(self.what, Stream):
            _state.streams.pop()


class _State:
    """Of the one device that can be there at a time."""

    def __init__(self) -> None:
        self.device: Device | None = None
        self.card: Hardware | None = None
        self.default = Stream()
        self.streams: list[Any] = [self.default]
        self.process = os.getpid()


_state = _State()


def _synchronized(operation: str) -> None:
    device = _state.device
    if device is not None and device.recorder is not None:
        device.recorder.record(operation, "synchronize", sys._getframe(2), waits=True)


def _now() -> float:
    """Microseconds at which the device comes to what is queued now. The first call starts the clock."""
    recorder = None if _state.device is None else _state.device.recorder
    if recorder is None or _state.card is None:
        return time.perf_counter() * 1e6
    if recorder.clock is None:
        recorder.clock = Clock(_state.card)
    return recorder.clock.mark()


def _say_modelled(frame: FrameType) -> None:
    recorder = None if _state.device is None else _state.device.recorder
    if recorder is None or _state.card is None:
        return
    site = recorder.stacks.sites[recorder.stacks.at(frame).site]
    said = (
        f"the milliseconds of Event.elapsed_time at {site.path}:{site.line} are modelled, for {_state.card.cuda_name}: "
        "of what runs on the device and of its dispatch, not of Python between"
    )
    if said not in recorder.errors:
        recorder.errors.append(said)


def _index_of(device: Any) -> int:
    if device is None:
        return 0
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if device.type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {device}")
        return device.index or 0
    return int(device)


def _check(device: Any) -> None:
    if _index_of(device) not in {0, -1}:
        raise RuntimeError("CUDA error: invalid device ordinal")


def properties_of(card: Hardware) -> Any:
    """As `torch.cuda.get_device_properties` gives them."""
    return SimpleNamespace(
        name=card.cuda_name,
        major=card.capability[0],
        minor=card.capability[1],
        total_memory=card.memory,
        multi_processor_count=card.multiprocessors,
        is_integrated=0,
        is_multi_gpu_board=0,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        max_threads_per_block=1024,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=_SHARED_MEMORY[card.capability] - 1024,
        shared_memory_per_multiprocessor=_SHARED_MEMORY[card.capability],
        L2_cache_size=50 * 1024 * 1024,
        gcnArchName=card.cuda_name,
        uuid="00000000-0000-0000-0000-000000000000",
        pci_bus_id=0,
        pci_device_id=0,
        pci_domain_id=0,
    )


def install(device: Device, card: Hardware, patches: Patches) -> None:
    """Make `torch.cuda` tell of the pretended device."""
    graphs.install(device)
    _state.device = device
    _state.card = card
    _state.streams[:] = [_state.default]
    _state.process = os.getpid()
    for owner, values in _replacements(device, card):
        for name, value in values.items():
            patches.set(owner, name, value)


def _replacements(device: Device, card: Hardware) -> Iterator[tuple[Any, dict[str, Any]]]:
    memory = _memory(device)
    random = _random()
    yield torch.cuda, _queries(card) | memory | random | _queues(device)
    yield torch.cuda.memory, memory
    yield torch.cuda.random, random
    yield torch.cuda.streams, {"Stream": Stream, "Event": Event, "ExternalStream": Stream}
    yield torch.cuda.graphs, _graphs()
    yield torch._C, {"_host_emptyCache": _nothing}
    yield torch.backends.cuda, {"is_built": lambda: True}
    yield torch.backends.cudnn, {"is_available": lambda: True, "version": lambda: _CUDNN_VERSION}
    yield torch.version, {"cuda": torch.version.cuda or _CUDA_VERSION}
    nothing = dict.fromkeys(("range_push", "range_pop", "mark", "range_start", "range_end"), _nothing)
    yield torch.cuda.nvtx, nothing
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        yield (
            accelerator,
            {
                "device_count": lambda: 1,
                "is_available": lambda: True,
                "current_accelerator": lambda check_available=False: torch.device("cuda"),
                "current_device_index": lambda: 0,
                "current_device_idx": lambda: 0,
                "set_device_index": _check,
                "set_device_idx": _check,
                "current_stream": lambda device=None: _state.streams[-1],
                "set_stream": _set_stream,
                "synchronize": lambda device=None: _synchronized("torch.cuda.synchronize"),
                "empty_cache": lambda: _synchronized("torch.cuda.empty_cache"),
                **{name: memory[name] for name in memory if hasattr(accelerator, name)},
            },
        )


def _nothing(*_arguments: Any, **_keywords: Any) -> int:
    return 0


def _lazy_init() -> None:
    if os.getpid() != _state.process:
        raise RuntimeError(
            "Cannot re-initialize CUDA in forked subprocess. To use CUDA with "
            "multiprocessing, you must use the 'spawn' start method"
        )


def _set_device(device: Any) -> None:
    _lazy_init()
    _check(device)


def _set_stream(stream: Any) -> None:
    if stream is not None:
        _state.streams[-1] = stream


def _queries(card: Hardware) -> dict[str, Any]:
    """What a program asks about the device."""

    def about(answer: Callable[[], Any]) -> Callable[..., Any]:
        def asked(device: Any = None) -> Any:
            _check(device)
            return answer()

        return asked

    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "_lazy_init": _lazy_init,
        "init": _lazy_init,
        "_lazy_call": lambda callable_, **_keywords: callable_(),
        "_is_in_bad_fork": lambda: os.getpid() != _state.process,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": _set_device,
        "_exchange_device": lambda index: 0,
        "_maybe_exchange_device": lambda index: 0,
        "get_device_name": about(lambda: card.cuda_name),
        "get_device_capability": about(lambda: card.capability),
        "get_device_properties": about(lambda: properties_of(card)),
        "is_bf16_supported": lambda including_emulation=True: card.capability >= (8, 0) or including_emulation,
        "is_tf32_supported": lambda: card.capability >= (8, 0),
        "get_arch_list": lambda: ["sm_75", "sm_80", "sm_86", "sm_90"],
        "get_gencode_flags": lambda: "",
        "can_device_access_peer": lambda device, peer_device: False,
        "utilization": lambda device=None: 0,
        "temperature": lambda device=None: 40,
        "power_draw": lambda device=None: 100_000,
        "clock_rate": lambda device=None: 1500,
        "memory_usage": lambda device=None: 0,
        "ipc_collect": _nothing,
        "current_blas_handle": _nothing,
        "set_sync_debug_mode": _nothing,
        "get_sync_debug_mode": lambda: 0,
        "has_half": True,
        "has_magma": True,
    }


def _graphs() -> dict[str, Any]:
    return {
        "CUDAGraph": graphs.Graph,
        "is_current_stream_capturing": graphs.is_capturing,
        "graph_pool_handle": lambda: (0, 0),
    }


def _queues(device: Device) -> dict[str, Any]:
    del device
    return {
        "synchronize": lambda device=None: _synchronized("torch.cuda.synchronize"),
        "Stream": Stream,
        "Event": Event,
        "ExternalStream": Stream,
        **_graphs(),
        "current_stream": lambda device=None: _state.streams[-1],
        "default_stream": lambda device=None: _state.default,
        "set_stream": _set_stream,
        "stream": _Context,
        "StreamContext": _Context,
        "device": _Device,
        "device_of": _Device,
    }


class _Device(_Context):
    """`with torch.cuda.device(d)`."""

    def __init__(self, device: Any = None) -> None:
        super().__init__()
        self.idx = 0 if isinstance(device, torch.Tensor) else _index_of(device)
        if self.idx not in {0, -1}:
            raise RuntimeError("CUDA error: invalid device ordinal")
        self.prev_idx = 0


def _memory(device: Device) -> dict[str, Any]:
    counted = device.memory

    def allocated(device: Any = None) -> int:
        return counted.allocated

    def peak(device: Any = None) -> int:
        return counted.peak

    def reset(device: Any = None) -> None:
        counted.reset_peak()

    def statistics(device: Any = None) -> dict[str, Any]:
        figures = {"current": counted.allocated, "peak": counted.peak, "allocated": counted.peak, "freed": 0}
        found: OrderedDict[str, Any] = OrderedDict()
        for kind in ("allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes"):
            for name, value in figures.items():
                found[f"{kind}.all.{name}"] = value
        found |= {"num_alloc_retries": 0, "num_ooms": 0, "allocation.all.current": counted.allocations}
        return found

    return {
        "memory_allocated": allocated,
        "max_memory_allocated": peak,
        "memory_reserved": allocated,
        "max_memory_reserved": peak,
        "memory_cached": allocated,
        "max_memory_cached": peak,
        "memory_stats": statistics,
        "memory_summary": lambda device=None, abbreviated=False: f"allocated: {counted.allocated} bytes (simulated)",
        "memory_snapshot": lambda *arguments, **keywords: [],
        "mem_get_info": lambda device=None: (counted.total - counted.allocated, counted.total),
        "reset_peak_memory_stats": reset,
        "reset_max_memory_allocated": reset,
        "reset_accumulated_memory_stats": reset,
        "reset_max_memory_cached": reset,
        "device_memory_used": allocated,
        "empty_cache": lambda: _synchronized("torch.cuda.empty_cache"),
        "set_per_process_memory_fraction": _nothing,
        "list_gpu_processes": lambda device=None: "no processes are running (simulated)",
        "_record_memory_history": _nothing,
    }


def _random() -> dict[str, Any]:
    """The device draws from the host's generator: what it computes, it computes there."""
    generator = torch.default_generator

    def state(device: Any = "cuda") -> Any:
        return generator.get_state()

    def set_state(new_state: Any, device: Any = "cuda") -> None:
        generator.set_state(new_state)

    return {
        "default_generators": (generator,),
        "_get_generator": lambda device: generator,
        "manual_seed": lambda seed: generator.manual_seed(int(seed)) and None,
        "manual_seed_all": _nothing,
        "seed": lambda: None,
        "seed_all": lambda: None,
        "initial_seed": generator.initial_seed,
        "get_rng_state": state,
        "get_rng_state_all": lambda: [state()],
        "set_rng_state": set_state,
        "set_rng_state_all": lambda new_states: generator.set_state(next(iter(new_states))) and None,
    }


@contextmanager
def no_recording() -> Iterator[None]:
    """What runs inside is not the program's."""
    device = _state.device
    recorder = device.recorder if device is not None else None
    if device is not None:
        device.recorder = None
    try:
        yield
    finally:
        if device is not None:
            device.recorder = recorder
