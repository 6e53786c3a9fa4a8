"""What measuring gives: verdicts and figures. Plain frozen data; JSON in, JSON out."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: `no difference` needs the whole interval between 1 / (1 + BAND) and 1 + BAND.
BAND = 0.05


class Verdict(enum.Enum):
    """What a comparison comes to."""

    FASTER = "faster"
    NO_DIFFERENCE = "no difference"
    UNDECIDED = "undecided"
    SLOWER = "slower"
    FEWER = "fewer"
    MORE = "more"
    SAME_COUNTS = "no counted figure changes"
    DIFFERENT_RESULT = "different result"
    NOT_REACHED = "not reached"
    NOT_MEASURABLE = "not measurable here"


@dataclass(frozen=True, slots=True)
class Machine:
    """Where something was measured. `kind` is torch's word: cpu, cuda, mps, xpu."""

    kind: str
    name: str
    torch: str
    #: Versions of what is below torch, by name: "CUDA 12.8", "driver 570.1".
    versions: tuple[str, ...] = ()
    #: Of every pool in a process that is measured; None for what the libraries choose.
    threads: int | None = None
    python: str = ""
    system: str = ""

    @property
    def device(self) -> str:
        return f"{self.kind} ({self.name})" if self.name else self.kind


@dataclass(frozen=True, slots=True)
class Result:
    """One row: a rule's benchmark at one size, or a fix under the user's workload.

    Times are seconds of the mean call, memory is bytes, `ratio` is before over after; None where nothing was measured.
    `equal` is None where results, or parts of them, were not compared: `not_compared` says which and why. `compared`
    is the number of calls whose results were, `calls` that of the calls that were timed. `bimodal` names the sides,
    "before" and "after", whose calls are of two kinds, such as a slow path in every second one. `reason` says why there
    is no ratio, or what else to know. `first_...` are the seconds of the first call where that does work of its own,
    such as compiling. `pairs` are those of processes, `rounds` the comparisons of neighbouring blocks in them, of which
    `disturbed` were left out.
    `counts_...` are those of one step on a simulated device, where nothing is timed: waits, launches, bytes_to_device,
    bytes_to_host. `failed` says that the workload itself was at fault.
    """

    code: str
    workload: str
    size: str
    verdict: Verdict
    before_s: float | None = None
    after_s: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    peak_before: int | None = None
    peak_after: int | None = None
    equal: bool | None = None
    device_before_s: float | None = None
    device_after_s: float | None = None
    noise: float | None = None
    first_before_s: float | None = None
    first_after_s: float | None = None
    pairs: int = 0
    rounds: int = 0
    disturbed: int = 0
    calls: int = 0
    compared: int = 0
    not_compared: tuple[str, ...] = ()
    bimodal: tuple[str, ...] = ()
    counts_before: Mapping[str, float] | None = None
    counts_after: Mapping[str, float] | None = None
    reason: str = ""
    failed: bool = False

    @property
    def pays_after(self) -> float | None:
        """Calls after which the dearer first call has paid for itself: infinite for never, None where none is told."""
        if self.first_before_s is None or self.first_after_s is None or self.before_s is None or self.after_s is None:
            return None
        dearer, saved = self.first_after_s - self.first_before_s, self.before_s - self.after_s
        pays = self.verdict in {Verdict.FASTER, Verdict.SLOWER} and dearer * saved > 0
        return dearer / saved if pays else math.inf

    def to_json(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__slots__}
        lists = {name: list(values[name]) for name in _LISTS}
        return {**values, **lists, "verdict": self.verdict.value}


def result_from_json(table: Mapping[str, Any]) -> Result:
    """Raises ValueError for what no `to_json` wrote."""
    try:
        values = {name: table[name] for name in Result.__slots__ if name in table}
        values["verdict"] = Verdict(values["verdict"])
        _check(values)
        values |= {name: tuple(values[name]) for name in _LISTS if name in values}
        return _restated(Result(**values))
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a result: {error}") from error


def _restated(result: Result) -> Result:
    """What was kept by versions that called every interval around 1, however wide, no difference."""
    if result.verdict is not Verdict.NO_DIFFERENCE or result.ratio_low is None or result.ratio_high is None:
        return result
    is_within = max(result.ratio_high, 1 / result.ratio_low) <= 1 + BAND if result.ratio_low > 0 else False
    return result if is_within else dataclasses.replace(result, verdict=Verdict.UNDECIDED)


def _check(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        wanted = _TYPES[name]
        if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
            raise TypeError(f"{name} is {value!r}")
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            raise TypeError(f"{name} is {value!r}")


_LISTS = ("not_compared", "bimodal")
_FIGURE = (int, float, type(None))
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("code", "workload", "size", "reason"), (str,)),
    **dict.fromkeys(("before_s", "after_s", "ratio", "ratio_low", "ratio_high", "noise"), _FIGURE),
    **dict.fromkeys(("peak_before", "peak_after", "device_before_s", "device_after_s"), _FIGURE),
    **dict.fromkeys(("first_before_s", "first_after_s"), _FIGURE),
    **dict.fromkeys(("pairs", "rounds", "disturbed", "calls", "compared"), (int,)),
    **dict.fromkeys(_LISTS, (list,)),
    **dict.fromkeys(("counts_before", "counts_after"), (dict, type(None))),
    "verdict": (Verdict,),
    "equal": (bool, type(None)),
    "failed": (bool,),
}


def to_json(machine: Machine, results: Sequence[Result], *, memory: str, date: str) -> dict[str, Any]:
    """The one object of `--output-format json`, which is also what is stored."""
    return {
        "device": machine.device,
        "torch": machine.torch,
        "python": machine.python,
        "system": machine.system,
        "versions": list(machine.versions),
        "threads": machine.threads,
        "date": date,
        "memory": memory,
        "results": [result.to_json() for result in results],
    }
