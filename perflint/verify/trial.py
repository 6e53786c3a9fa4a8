"""One trial: set up one side, warm it up, compare what it gives, then measure it block by block. In its own process.

`begin` turns one JSON object, what is asked for, into another and, for what can be measured, a session. The process
then stays: its blocks are short, and in turn with those of other processes, so that all of them see the same machine.
"""

from __future__ import annotations

import gc
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from perflint.verify import contract, outcome, usercode
from perflint.verify.contract import Equality
from perflint.verify.device import Device, resolve

#: Before anything is timed a side is called at least so often, and for at least so many seconds.
_WARM_CALLS = 2
_WARM_SECONDS = 0.05
#: Seconds of one sample of a side that is called many times, and so many samples of a block at least.
_SAMPLE, _SAMPLES = 0.001, 4
#: A call this long is a sample by itself; one as long as the other is warm once it was called.
_LONG, _VERY_LONG = 0.002, 0.5


class Session(Protocol):
    """What can be measured, in its process."""

    def block(self) -> dict[str, Any]:
        """One block: the seconds of one call, and whether the machine took the processor away meanwhile."""
        ...

    def end(self) -> dict[str, Any]: ...


def begin(request: Mapping[str, Any]) -> tuple[dict[str, Any], Session | None]:
    return _ASKED[request["kind"]](request)


def _describe(request: Mapping[str, Any]) -> tuple[dict[str, Any], None]:
    """What a `measure.py` says about itself, and what is missing here to run it."""
    workload = contract.load_workload(Path(request["file"]))
    kind = resolve(request["device"]).partition(":")[0]
    return {
        "caption": workload.caption,
        "sizes": list(workload.sizes),
        "lacking": workload.lacking(kind),
        "compiles": workload.compiles or workload.startup,
    }, None


def _machine(request: Mapping[str, Any]) -> tuple[dict[str, Any], None]:
    device = Device(resolve(request["device"]))
    return {"device": device.name, **device.describe()}, None


def _benchmark(request: Mapping[str, Any]) -> tuple[dict[str, Any], Session]:
    workload = contract.load_workload(Path(request["file"]))
    function = workload.sides[request["side"]]
    size = workload.sizes[request["size"]]
    # What a compiler keeps between processes is kept for this comparison only, so that its first trial is cold.
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = request["compiled"]

    def setup() -> Any:
        seed_all(request["seed"])
        return workload.setup(size, request["device"])

    state = setup()
    gc.collect()
    gc.unfreeze()  # a collection of the workload's own costs what torch's objects make it cost
    side = _Side(
        Device(request["device"]),
        workload.equal,
        workload.threads,
        int(request["seed"]),
        float(request["block"]),
        startup=workload.startup,
    )

    def end() -> None:
        if workload.teardown is not None:
            workload.teardown(state)

    answer = _first(side, lambda: function(state), request)
    answer["ends"] = workload.teardown is not None
    if workload.once:
        return answer, _FreshStates(side, setup, function, end)
    return answer, _Calls(side, lambda: function(state), answer["call"], end)


def _callable(request: Mapping[str, Any]) -> tuple[dict[str, Any], Session]:
    """The user's callable, with the sources of one tree."""
    gc.unfreeze()  # a collection costs the user's code what torch's own objects make it cost
    origin, tree = Path(request["origin"]), Path(request["tree"])
    os.chdir(request["folder"])
    usercode.redirect_imports(origin, tree, Path(request["folder"]))
    seed_all(request["seed"])
    function = usercode.resolve(request["target"])
    equal = (request["rtol"], request["atol"])
    side = _Side(Device(request["device"]), equal, None, int(request["seed"]), float(request["block"]), collects=True)
    answer = _first(side, function, request)
    elsewhere = usercode.from_elsewhere(origin, tree, request["changed"])
    if elsewhere:
        raise contract.ContractError(f"{elsewhere} was imported from the original tree, not from the copy with the fix")
    used = usercode.loaded(tree)
    answer["unused"] = [path for path in request["changed"] if path not in used]
    return answer, _Calls(side, function, answer["call"])


# Measuring


@dataclass(frozen=True, slots=True)
class _Side:
    """How a side is measured: `block` is the seconds of one block.

    `collects`: the collector runs as it does for the user. A rule's own benchmark goes without its noise.
    `startup`: the seconds of the first call are told.
    """

    device: Device
    equal: Equality
    threads: int | None
    seed: int
    block: float
    collects: bool = False
    startup: bool = False


def _first(side: _Side, call: Callable[[], Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """The first call: its result is compared, its memory measured."""
    import torch

    if side.threads is not None:
        torch.set_num_threads(side.threads)
    answer: dict[str, Any] = {}
    seed_all(side.seed)
    memory = _Memory(side.device)
    start = time.perf_counter()
    result = call()
    side.device.synchronize()
    answer["call"] = time.perf_counter() - start
    if side.startup:
        answer["first"] = answer["call"]
    answer["peak"] = memory.peak()
    _compare(result, side.equal, request, answer)
    return answer


class _Memory:
    """Peak memory from here on: all that is allocated on an accelerator, or what is added to this process."""

    def __init__(self, device: Device) -> None:
        self._device = device
        device.reset_peak()
        self._held = 0 if device.is_accelerator else device.peak() or 0

    def peak(self) -> int | None:
        peak = self._device.peak()
        return None if peak is None else max(peak - self._held, 0)


class _Calls:
    """Many calls on one state."""

    def __init__(
        self, side: _Side, call: Callable[[], Any], first: float, end: Callable[[], None] = lambda: None
    ) -> None:
        """`first` are the seconds of the call that was the first."""
        import torch
        from torch.utils.benchmark import Timer

        self._side = side
        self._call = call
        self._first = first
        self._end = end
        self._timer = Timer(
            stmt="call()",
            timer=self._clock,
            # `timeit` switches the collector off; what the user's code leaves to it is part of what it costs.
            setup="gc.enable()" if side.collects else "pass",
            globals={"call": call, "gc": gc},
            num_threads=side.threads or torch.get_num_threads(),
        )
        self._seconds = self._warm_up()  # of one call, about

    def _clock(self) -> float:
        # torch's own asks which accelerators there are, each time; here that is known.
        self._side.device.synchronize()
        return time.perf_counter()

    def block(self) -> dict[str, Any]:
        seed_all(self._side.seed)
        number = max(1, round(_SAMPLE / max(self._seconds, 1e-9)))
        samples = self._long_calls() if self._seconds >= _LONG else self._short_calls(number)
        answer = _summed_up(samples)
        self._seconds = answer["seconds"]
        return {**answer, **self._by_events(number)}

    def _long_calls(self) -> list[_Sample]:
        """One call is called before the others, uncounted."""
        samples: list[_Sample] = []
        taken = _interruptions()

        def note(number: int, seconds: float) -> None:
            nonlocal taken
            before, taken = taken, _interruptions()
            samples.append(_Sample(seconds / number, is_clean=before == taken))

        self._timer.blocked_autorange(note, self._side.block)
        return samples

    def _short_calls(self, number: int) -> list[_Sample]:
        """Samples of a millisecond: other processes seldom leave much more than that in peace."""
        # Others ran meanwhile: what they took of the caches is no part of what is measured.
        self._timer.timeit(number)
        samples: list[_Sample] = []
        end = time.perf_counter() + self._side.block
        while len(samples) < _SAMPLES or time.perf_counter() < end:
            before = _interruptions()
            seconds = self._timer.timeit(number).times[0]
            samples.append(_Sample(seconds, is_clean=_interruptions() == before))
        return samples

    def end(self) -> dict[str, Any]:
        self._end()
        return {}

    def _warm_up(self) -> float:
        """About what a call takes when warm, in seconds."""
        if self._first >= _VERY_LONG and not self._side.startup:
            return self._first
        end = time.perf_counter() + _WARM_SECONDS
        calls = 1  # the one whose result was compared
        best = float("inf")
        while calls < _WARM_CALLS or time.perf_counter() < end:
            start = time.perf_counter()
            self._call()
            self._side.device.synchronize()
            best = min(best, time.perf_counter() - start)
            calls += 1
        return best

    def _by_events(self, calls: int) -> dict[str, Any]:
        """Seconds of a call by the device's own clock, where it has one."""
        stopwatch = self._side.device.stopwatch()
        if stopwatch is None:
            return {}
        with stopwatch:
            for _ in range(calls):
                self._call()
        return {"device_seconds": stopwatch.seconds / calls}


class _FreshStates:
    """As `_Calls`, for a side each call of which needs a state of its own."""

    def __init__(
        self, side: _Side, setup: Callable[[], Any], function: Callable[[Any], Any], end: Callable[[], None]
    ) -> None:
        self._side = side
        self._setup = setup
        self._function = function
        self._end = end

    def block(self) -> dict[str, Any]:
        samples: list[_Sample] = []
        end = time.perf_counter() + self._side.block
        while not samples or time.perf_counter() < end:
            state = self._setup()
            gc.collect()
            self._side.device.synchronize()
            before = _interruptions()
            start = time.perf_counter()
            result = self._function(state)
            self._side.device.synchronize()
            seconds = time.perf_counter() - start
            samples.append(_Sample(seconds, is_clean=_interruptions() == before))
            del state, result
        return _summed_up(samples)

    def end(self) -> dict[str, Any]:
        self._end()
        return {}


@dataclass(frozen=True, slots=True)
class _Sample:
    """`is_clean`: the processor was not taken away meanwhile."""

    seconds: float
    is_clean: bool


def _summed_up(samples: list[_Sample]) -> dict[str, Any]:
    """The lower quartile of the clean samples, since whatever disturbs only ever adds; of all when few are clean."""
    clean = [sample.seconds for sample in samples if sample.is_clean]
    is_disturbed = 3 * len(clean) < len(samples)
    times = [sample.seconds for sample in samples] if is_disturbed else clean
    return {"seconds": lower_quartile(times), "disturbed": is_disturbed}


def _interruptions() -> int:
    """How often the system has taken the processor away from this process."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _compare(result: Any, equal: Equality, request: Mapping[str, Any], answer: dict[str, Any]) -> None:
    """Keep the result, or hold it against the one that was kept."""
    file = Path(request["reference"]) if request.get("reference") else None
    if file is None or equal is None:
        answer["equal"] = None
    elif request["keeps"]:
        outcome.keep(result, file)
        answer["equal"] = True if outcome.is_comparable(file) else None
    else:
        answer["difference"] = outcome.difference(file, result, equal)
        answer["equal"] = not answer["difference"]


def lower_quartile(times: list[float]) -> float:
    if len(times) < 4:
        return min(times)
    return statistics.quantiles(times, n=4)[0]


def seed_all(seed: int) -> None:
    """The same numbers for both sides, whichever generator they use."""
    random.seed(seed)
    import torch

    torch.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)


_ASKED: Mapping[str, Callable[[Mapping[str, Any]], tuple[dict[str, Any], Session | None]]] = {
    "describe": _describe,
    "machine": _machine,
    "benchmark": _benchmark,
    "callable": _callable,
}
