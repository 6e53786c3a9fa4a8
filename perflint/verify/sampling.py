"""Timing the calls of one side, block by block. What tells the time and what tells preemption are handed in.

Every call between the first and the last of a block counts, and blocks follow one another without a fixed number of
calls between them: leaving out each second call would show a workload that is slow in each second call as always slow,
or never.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

#: Seconds of one sample of calls that are short, and so many samples of a block at least.
_SAMPLE, _SAMPLES = 0.001, 4
#: A call this long is a sample by itself.
_LONG = 0.002
#: Calls that are timed one by one before the blocks, where samples hold many: so many, within so many seconds.
_SINGLE_CALLS, _SINGLE_SECONDS = 200, 0.02


class Meter(Protocol):
    """What is read around a sample."""

    def now(self) -> float:
        """Seconds, by a clock that never goes back."""
        ...

    def waited(self) -> float | None:
        """Seconds in which this thread could have run and had no processor, so far; None where that is not known."""
        ...

    def interruptions(self) -> int:
        """How often the system has taken the processor away from this process."""
        ...

    def shares(self) -> bool:
        """Whether processes of the workload's own compete for the processor: then waiting for it is a cost of its."""
        ...


class SystemMeter:
    """What the system reports. `now` is the clock to read. To be made in the process and thread that is timed."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._handle: int | None = None
        with contextlib.suppress(OSError):
            self._handle = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        if self.waited() is None:
            self._handle = None

    def now(self) -> float:
        return self._now()

    def waited(self) -> float | None:
        if self._handle is None:
            return None
        try:
            # Nanoseconds on a processor, nanoseconds of waiting for one, number of time slices.
            words = os.pread(self._handle, 100, 0).split()
            return int(words[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return None

    def interruptions(self) -> int:
        try:
            import resource
        except ImportError:  # Windows
            return 0
        return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw

    def shares(self) -> bool:
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except (AttributeError, ChildProcessError):
            return False
        except OSError:
            return True
        return True


@dataclass(frozen=True, slots=True)
class Sample:
    """Seconds of `calls` calls, and `waited` of them without a processor (None: not known)."""

    seconds: float
    calls: int
    waited: float | None
    is_clean: bool
    device_seconds: float | None = None


@dataclass
class Sampler:
    """Times `call` on one state. `block_seconds` are those of a block, `estimate` those of a call, about.

    `prepare`, where there is one, makes a state for each call, untimed: `call` is given it.
    `reseed` is called with a number before each block, the same numbers in every process.
    `finish` waits for the device. `stopwatch` gives seconds by the device's own clock around a `with`.
    """

    call: Callable[..., Any]
    meter: Meter
    block_seconds: float
    estimate: float
    reseed: Callable[[int], None] = lambda _: None
    finish: Callable[[], None] = lambda: None
    stopwatch: Callable[[], Any] = lambda: None
    prepare: Callable[[], Any] | None = None
    #: The collector runs as it does for the user.
    collects: bool = False
    #: Waiting for a processor delays the calls by as much. On an accelerator it may pass while the device works.
    is_host: bool = True
    #: Calls that are timed one by one, to tell whether they are bimodal.
    singles: tuple[float, ...] = field(init=False, default=())
    _number: int = field(init=False, default=0)

    def block(self) -> dict[str, Any]:
        """The next block, as JSON: for `judging.Block`."""
        self._number += 1
        self.reseed(self._number)
        shares = not self.is_host or self.meter.shares()
        with _collector(enabled=self.collects):
            singles = self._single_calls() if self._number == 1 else []
            samples = list(self._samples())
        return summed_up([*samples], singles, shares=shares or self.meter.shares())

    def _samples(self) -> Iterator[Sample]:
        number = self._calls_per_sample()
        if number > 1:
            # Other processes ran meanwhile: what they took of the caches is no part of what is measured. Not always as
            # many calls, which could always be those of a slow path.
            chance = random.Random(self._number)  # noqa: S311
            for _ in range(chance.randint(number // 2, number + number // 2)):
                self.call()
        count, calls, seconds = 0, 0, 0.0
        end = self.meter.now() + self.block_seconds
        fewest = _SAMPLES if number > 1 else 1
        while count < fewest or self.meter.now() < end:
            sample = self._sample(number)
            yield sample
            count, calls, seconds = count + 1, calls + sample.calls, seconds + sample.seconds
        self.estimate = seconds / calls

    def _calls_per_sample(self) -> int:
        if self.prepare is not None or self.estimate >= _LONG:
            return 1
        return max(1, round(_SAMPLE / max(self.estimate, 1e-9)))

    def _single_calls(self) -> list[Sample]:
        """Calls one by one, which are not judged; none where samples are single calls anyway."""
        if self._calls_per_sample() == 1:
            return []
        samples: list[Sample] = []
        end = self.meter.now() + _SINGLE_SECONDS
        while len(samples) < _SINGLE_CALLS and self.meter.now() < end:
            samples.append(self._sample(1))
        return samples

    def _sample(self, number: int) -> Sample:
        meter, call = self.meter, self.call
        state: tuple[Any, ...] = ()
        if self.prepare is not None:
            state = (self.prepare(),)
            gc.collect()
        self.finish()
        interruptions, waited = meter.interruptions(), meter.waited()
        watch = self.stopwatch()
        start = meter.now()
        with watch or contextlib.nullcontext():
            for _ in range(number):
                call(*state)
        self.finish()
        seconds = meter.now() - start
        after = meter.waited()
        lost = None if waited is None or after is None else after - waited
        # What was waited between two readings beside the call was not waited within it.
        lost = 0.0 if lost is not None and lost >= seconds else lost
        return Sample(
            seconds, number, lost, meter.interruptions() == interruptions, watch.seconds if watch is not None else None
        )


def summed_up(samples: list[Sample], singles: list[Sample] | None = None, *, shares: bool) -> dict[str, Any]:
    """All calls of a block together. `singles` are further calls that only tell whether calls are bimodal."""
    calls = sum(sample.calls for sample in samples)
    waits = [sample.waited for sample in samples if sample.waited is not None]
    answer: dict[str, Any] = {
        "seconds": sum(sample.seconds for sample in samples),
        "calls": calls,
        "waited": sum(waits) if len(waits) == len(samples) and not shares else None,
        "disturbed": any(not sample.is_clean for sample in samples),
        "times": [
            sample.seconds - (0.0 if shares else sample.waited or 0.0)
            for sample in [*samples, *(singles or [])]
            if sample.calls == 1
        ],
    }
    by_device = [sample.device_seconds for sample in samples if sample.device_seconds is not None]
    return {**answer, "device_seconds": sum(by_device) / calls} if by_device else answer


@contextlib.contextmanager
def _collector(*, enabled: bool) -> Iterator[None]:
    """Python's garbage collector on or off, and as it was before afterwards."""
    was = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        yield
    finally:
        (gc.enable if was else gc.disable)()
