"""What measuring gives: verdicts and figures. Plain frozen data; JSON in, JSON out."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class Verdict(enum.Enum):
    """What a comparison comes to."""

    FASTER = "faster"
    NO_DIFFERENCE = "no difference"
    SLOWER = "slower"
    DIFFERENT_RESULT = "different result"
    NOT_MEASURABLE = "not measurable here"


@dataclass(frozen=True, slots=True)
class Machine:
    """Where something was measured. `kind` is torch's word: cpu, cuda, mps, xpu."""

    kind: str
    name: str
    torch: str
    #: Versions of what is below torch, by name: "CUDA 12.8", "driver 570.1".
    versions: tuple[str, ...] = ()
    python: str = ""
    system: str = ""

    @property
    def device(self) -> str:
        return f"{self.kind} ({self.name})" if self.name else self.kind


@dataclass(frozen=True, slots=True)
class Result:
    """One row: a rule's benchmark at one size, or a fix under the user's workload.

    Times are seconds, memory is bytes, `ratio` is before over after; None where nothing was measured. `equal` is None
    where results were not or could not be compared. `reason` says why there is no ratio, or what else to know.
    `first_...` are the seconds of the first call where that does work of its own, such as compiling. `pairs` are those
    of processes, `rounds` the comparisons of neighbouring blocks in them, of which `disturbed` were left out.
    `failed` says that the workload itself was at fault.
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
        return {**values, "verdict": self.verdict.value}


def result_from_json(table: Mapping[str, Any]) -> Result:
    """Raises ValueError for what no `to_json` wrote."""
    try:
        values = {name: table[name] for name in Result.__slots__ if name in table}
        values["verdict"] = Verdict(values["verdict"])
        _check(values)
        return Result(**values)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a result: {error}") from error


def _check(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        wanted = _TYPES[name]
        if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
            raise TypeError(f"{name} is {value!r}")


_FIGURE = (int, float, type(None))
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("code", "workload", "size", "reason"), (str,)),
    **dict.fromkeys(("before_s", "after_s", "ratio", "ratio_low", "ratio_high", "noise"), _FIGURE),
    **dict.fromkeys(("peak_before", "peak_after", "device_before_s", "device_after_s"), _FIGURE),
    **dict.fromkeys(("first_before_s", "first_after_s"), _FIGURE),
    **dict.fromkeys(("pairs", "rounds", "disturbed"), (int,)),
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
        "date": date,
        "memory": memory,
        "results": [result.to_json() for result in results],
    }
