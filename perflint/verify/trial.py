"""One trial: set up one side, warm it up, compare what it gives, then measure it block by block. In its own process.

`begin` turns one JSON object, what is asked for, into another and, for what can be measured, a session. The process
then stays: its blocks are short, and in turn with those of other processes, so that all of them see the same machine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import os
import random
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflint.verify import contract, outcome, tracing, usercode
from perflint.verify.contract import Equality
from perflint.verify.counting import SIMULATED
from perflint.verify.device import Device, resolve
from perflint.verify.sampling import Sampler, SystemMeter

#: Before anything is timed a side is called at least so often, and for at least so many seconds.
_WARM_CALLS = 2
_WARM_SECONDS = 0.05
#: A call this long is warm once it was called.
_VERY_LONG = 0.5
#: The results of so many calls are compared, on one state, as far as they begin within so many seconds.
_COMPARED_CALLS, _COMPARED_SECONDS = 5, 20.0


@dataclass(frozen=True, slots=True)
class Session:
    """What can be measured, in its process."""

    sampler: Sampler
    teardown: Callable[[], None] = lambda: None

    def block(self) -> dict[str, Any]:
        """One block, as `sampling.Sampler` says."""
        return self.sampler.block()

    def end(self) -> dict[str, Any]:
        self.teardown()
        return {}


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

    threads = request["threads"] if workload.threads is None else workload.threads
    _set_threads(threads)

    def setup() -> Any:
        seed_all(request["seed"])
        return workload.setup(size, request["device"])

    state = setup()
    gc.collect()
    gc.unfreeze()  # a collection of the workload's own costs what torch's objects make it cost
    side = _Side(
        Device(request["device"]),
        workload.equal,
        int(request["seed"]),
        float(request["block"]),
        startup=workload.startup,
    )

    def end() -> None:
        if workload.teardown is not None:
            workload.teardown(state)

    answer = _first(side, lambda: function(state), request, calls=1 if workload.once else _COMPARED_CALLS)
    answer["ends"] = workload.teardown is not None
    if workload.once:
        return answer, Session(side.sampler(function, 0.0, prepare=setup), end)
    call = functools.partial(function, state)
    return answer, Session(side.sampler(call, _warm_up(side, call, answer["call"])), end)


def _callable(request: Mapping[str, Any]) -> tuple[dict[str, Any], Session | None]:
    """The user's callable, with the sources of one tree."""
    gc.unfreeze()  # a collection costs the user's code what torch's own objects make it cost
    origin, tree = Path(request["origin"]), Path(request["tree"])
    os.chdir(request["folder"])
    usercode.redirect_imports(origin, tree, Path(request["folder"]))
    if request.get("trace"):
        os.environ.update(request["trace"]["environment"])  # for the processes that it starts
        tracing.begin(request["trace"])
    # Before the workload is loaded: a number of threads that it sets itself is its own.
    _set_threads(request["threads"])
    if request["device"] == SIMULATED:
        return _on_simulated_device(request), None
    seed_all(request["seed"])
    function = usercode.resolve(request["target"])
    equal = (request["rtol"], request["atol"])
    side = _Side(
        Device(request["device"]),
        equal,
        int(request["seed"]),
        float(request["block"]),
        collects=True,
        tree=str(tree),
    )
    answer = _first(side, function, request, calls=_COMPARED_CALLS)
    _after_calls(request)
    if request.get("reference"):
        return answer, Session(side.sampler(function, 0.0))  # only its results are asked for
    return answer, Session(side.sampler(function, _warm_up(side, function, answer["call"])))


def _on_simulated_device(request: Mapping[str, Any]) -> dict[str, Any]:
    """As `_callable`, counted call by call instead of timed."""
    from perflint.verify.simulating import counting

    tree = Path(request["tree"])
    with counting(tree) as counts:
        seed_all(request["seed"])
        function = usercode.resolve(request["target"])
        equal = (request["rtol"], request["atol"])
        side = _Side(Device("cpu"), equal, int(request["seed"]), float(request["block"]), tree=str(tree))
        answer = _first(side, lambda: counts.call(function), request, calls=_COMPARED_CALLS)
    _after_calls(request)
    return {**answer, "peak": None, "counts": [dataclasses.asdict(one) for one in counts.calls]}


def _after_calls(request: Mapping[str, Any]) -> None:
    """Say what was seen of the lines that are looked for, and make sure that they were those of the copy."""
    if request.get("trace"):
        tracing.finish()
    elsewhere = usercode.from_elsewhere(Path(request["origin"]), Path(request["tree"]), request["changed"])
    if elsewhere:
        raise contract.ContractError(f"{elsewhere} was imported from the original tree, not from the copy with the fix")


# Measuring


@dataclass(frozen=True, slots=True)
class _Side:
    """How a side is measured: `block` is the seconds of one block.

    `collects`: the collector runs as it does for the user. A rule's own benchmark goes without its noise.
    `startup`: the seconds of the first call are told. `tree` is the folder of the copy, which no result depends on.
    """

    device: Device
    equal: Equality
    seed: int
    block: float
    collects: bool = False
    startup: bool = False
    tree: str = ""

    def sampler(
        self, call: Callable[..., Any], estimate: float, *, prepare: Callable[[], Any] | None = None
    ) -> Sampler:
        return Sampler(
            call,
            SystemMeter(time.perf_counter),
            self.block,
            estimate,
            # Other numbers in each block: the same ones again would take the same path through the code again.
            reseed=lambda number: seed_all(self.seed + number),
            finish=self.device.synchronize,
            stopwatch=self.device.stopwatch,
            prepare=prepare,
            collects=self.collects,
            is_host=not self.device.is_accelerator,
        )


def _first(side: _Side, call: Callable[[], Any], request: Mapping[str, Any], *, calls: int) -> dict[str, Any]:
    """The first call: its memory is measured. Its result and those of the next `calls` - 1 are compared."""
    answer: dict[str, Any] = {}
    seed_all(side.seed)
    memory = _Memory(side.device)
    start = time.perf_counter()
    result = call()
    side.device.synchronize()
    answer["call"] = time.perf_counter() - start
    answer["threads"] = _threads()
    if side.startup:
        answer["first"] = answer["call"]
    answer["peak"] = memory.peak()
    answer.update(_compared(side, result, call, request, calls, start + _COMPARED_SECONDS))
    return answer


def _threads() -> int:
    import torch

    return int(torch.get_num_threads())


def _set_threads(threads: int | None) -> None:
    """One number for all pools of torch."""
    import torch

    if threads is None:
        return
    torch.set_num_threads(threads)
    # It can be set once, and not after it was used.
    with contextlib.suppress(RuntimeError):
        torch.set_num_interop_threads(threads)


def _warm_up(side: _Side, call: Callable[[], Any], first: float) -> float:
    """About what a call takes when warm, in seconds. `first` are those of the first call."""
    if first >= _VERY_LONG and not side.startup:
        return first
    end = time.perf_counter() + _WARM_SECONDS
    calls = 1  # the one whose result was compared
    best = float("inf")
    while calls < _WARM_CALLS or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        side.device.synchronize()
        best = min(best, time.perf_counter() - start)
        calls += 1
    return best


class _Memory:
    """Peak memory from here on: all that is allocated on an accelerator, or what is added to this process."""

    def __init__(self, device: Device) -> None:
        self._device = device
        device.reset_peak()
        self._held = 0 if device.is_accelerator else device.peak() or 0

    def peak(self) -> int | None:
        peak = self._device.peak()
        return None if peak is None else max(peak - self._held, 0)


def _compared(
    side: _Side, result: Any, call: Callable[[], Any], request: Mapping[str, Any], calls: int, until: float
) -> dict[str, Any]:
    """Keep the results of some calls, the first of which gave `result`, or hold them against those that were kept.

    The state of the workload and of the random numbers goes on from call to call.
    """
    file = Path(request["reference"]) if request.get("reference") else None
    if file is None or side.equal is None:
        return {"equal": None}
    if not request["keeps"]:
        calls, until = outcome.count(file), float("inf")
    snapshots = [outcome.snapshot(result, side.tree)]
    del result
    while len(snapshots) < calls and time.perf_counter() < until:
        snapshots.append(outcome.snapshot(call(), side.tree))
    if request["keeps"]:
        outcome.keep(snapshots, file)
        unread = outcome.unread(snapshots)
        return {"equal": None if unread else True, "unread": unread, "compared": len(snapshots)}
    found = outcome.compare(file, snapshots, side.equal)
    equal = False if found.difference else None if found.unread else True
    return {"equal": equal, "difference": found.difference, "unread": found.unread, "compared": len(snapshots)}


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
