"""One trial: set up one side, warm it up, measure it, compare what it gives. Runs in a process of its own.

A trial is asked for by one JSON object and answers with one; `run` turns the one into the other.
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
from typing import Any

from perflint.verify import contract, outcome, usercode
from perflint.verify.contract import Equality
from perflint.verify.device import Device, resolve
from perflint.verify.spin import spin

#: Before anything is timed a side is called at least so often, and for at least so many seconds.
_WARM_CALLS = 2
_WARM_SECONDS = 0.05
#: Seconds of a call from which a sample is one call, and of a block of shorter ones.
_LONG, _BLOCK = 0.005, 0.001
#: Samples of a side that needs a fresh state for each.
_FEWEST_FRESH = 3


def run(request: Mapping[str, Any]) -> dict[str, Any]:
    return _ASKED[request["kind"]](request)


def _describe(request: Mapping[str, Any]) -> dict[str, Any]:
    """What a `measure.py` says about itself, and what is missing here to run it."""
    workload = contract.load_workload(Path(request["file"]))
    kind = resolve(request["device"]).partition(":")[0]
    return {
        "caption": workload.caption,
        "sizes": list(workload.sizes),
        "lacking": workload.lacking(kind),
        "startup": workload.startup,
    }


def _machine(request: Mapping[str, Any]) -> dict[str, Any]:
    device = Device(resolve(request["device"]))
    return {"device": device.name, **device.describe()}


def _benchmark(request: Mapping[str, Any]) -> dict[str, Any]:
    workload = contract.load_workload(Path(request["file"]))
    function = workload.sides[request["side"]]
    size = workload.sizes[request["size"]]
    device = Device(request["device"])

    def fresh() -> Any:
        seed_all(request["seed"])
        return workload.setup(size, request["device"])

    # What a compiler keeps between processes is kept for this comparison only, so that its first trial is cold.
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = request["compiled"]
    state = fresh()
    gc.collect()
    gc.unfreeze()  # a collection of the workload's own costs what torch's objects make it cost
    side = _Side(
        lambda: function(state), device, workload.equal, workload.threads, keeps_gc=False, startup=workload.startup
    )
    try:
        answer = _measure(side, request) if not workload.once else _measure_fresh(side, request, fresh, function)
    finally:
        if workload.teardown is not None:
            workload.teardown(state)
    return answer


def _callable(request: Mapping[str, Any]) -> dict[str, Any]:
    """The user's callable, with the sources of one tree."""
    gc.unfreeze()  # a collection costs the user's code what torch's own objects make it cost
    origin, tree = Path(request["origin"]), Path(request["tree"])
    os.chdir(request["folder"])
    usercode.redirect_imports(origin, tree, Path(request["folder"]))
    seed_all(request["seed"])
    function = usercode.resolve(request["target"])
    equal = (request["rtol"], request["atol"])
    side = _Side(function, Device(request["device"]), equal, None, keeps_gc=True)
    answer = _measure(side, request)
    elsewhere = usercode.from_elsewhere(origin, tree, request["changed"])
    if elsewhere:
        raise contract.ContractError(f"{elsewhere} was imported from the original tree, not from the copy with the fix")
    used = usercode.loaded(tree)
    answer["unused"] = [path for path in request["changed"] if path not in used]
    return answer


# Measuring


@dataclass(frozen=True, slots=True)
class _Side:
    """`keeps_gc`: the collector runs as it does for the user. A rule's own benchmark goes without its noise.

    `startup`: the seconds of the first call are told.
    """

    call: Callable[[], Any]
    device: Device
    equal: Equality
    threads: int | None
    keeps_gc: bool
    startup: bool = False


def _measure(side: _Side, request: Mapping[str, Any]) -> dict[str, Any]:
    import torch

    if side.threads is not None:
        torch.set_num_threads(side.threads)
    pace = spin()
    answer: dict[str, Any] = {}
    seed_all(request["seed"])
    memory = _Memory(side.device)
    start = time.perf_counter()
    result = side.call()
    side.device.synchronize()
    if side.startup:
        answer["first"] = time.perf_counter() - start
    answer["peak"] = memory.peak()
    _compare(result, side.equal, request, answer)
    del result
    answer |= _timed(side, float(request["seconds"]), _warm_up(side))
    answer["spin"] = max(pace, spin())
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


def _timed(side: _Side, seconds: float, call: float) -> dict[str, Any]:
    """Seconds of one call: the lower quartile of samples, since whatever disturbs only ever adds.

    `call` is about what a call takes.
    """
    import torch
    from torch.utils.benchmark import Timer

    def clock() -> float:
        # torch's own asks which accelerators there are, each time; here that is known.
        side.device.synchronize()
        return time.perf_counter()

    timer = Timer(
        stmt="call()",
        timer=clock,
        # `timeit` switches the collector off; what the user's code leaves to it is part of what it costs.
        setup="gc.enable()" if side.keeps_gc else "pass",
        globals={"call": side.call, "gc": gc},
        num_threads=side.threads or torch.get_num_threads(),
    )
    if side.device.is_accelerator or call >= _LONG:
        measured = timer.blocked_autorange(min_run_time=seconds)
        times, calls = measured.times, int(measured.number_per_run)
    else:
        times, calls = _short_blocks(timer, seconds, call), 1
    figures: dict[str, Any] = {"seconds": lower_quartile(times), "samples": len(times)}
    stopwatch = side.device.stopwatch()
    if stopwatch is not None:
        with stopwatch:
            for _ in range(calls):
                side.call()
        figures["device_seconds"] = stopwatch.seconds / calls
    return figures


def _short_blocks(timer: Any, seconds: float, call: float) -> list[float]:
    """Samples of about a millisecond: `blocked_autorange` takes ten, and other processes seldom leave that in peace."""
    number = max(1, round(_BLOCK / max(call, 1e-9)))
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 4 or time.perf_counter() < end:
        times += timer.timeit(number).times
    return times


def _measure_fresh(
    side: _Side, request: Mapping[str, Any], fresh: Callable[[], Any], function: Callable[[Any], Any]
) -> dict[str, Any]:
    """As `_measure`, for a side each call of which needs a state of its own."""
    import torch

    torch.set_num_threads(side.threads or torch.get_num_threads())
    pace = spin()
    answer: dict[str, Any] = {}
    times: list[float] = []
    deadline = time.perf_counter() + float(request["seconds"])
    while len(times) < _FEWEST_FRESH or time.perf_counter() < deadline:
        state = fresh()
        gc.collect()
        memory = _Memory(side.device)
        side.device.synchronize()
        start = time.perf_counter()
        result = function(state)
        side.device.synchronize()
        times.append(time.perf_counter() - start)
        if len(times) == 1:
            answer["peak"] = memory.peak()
            _compare(result, side.equal, request, answer)
        del state, result
    # The first one warmed up.
    answer |= {"seconds": lower_quartile(times[1:]), "samples": len(times) - 1}
    answer["spin"] = max(pace, spin())
    return answer


def _warm_up(side: _Side) -> float:
    """About what a call takes when warm, in seconds."""
    end = time.perf_counter() + _WARM_SECONDS
    calls = 1  # the one whose result was compared
    best = float("inf")
    while calls < _WARM_CALLS or time.perf_counter() < end:
        start = time.perf_counter()
        side.call()
        side.device.synchronize()
        best = min(best, time.perf_counter() - start)
        calls += 1
    return best


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


_ASKED: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "describe": _describe,
    "machine": _machine,
    "benchmark": _benchmark,
    "callable": _callable,
}
