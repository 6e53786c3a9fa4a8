"""What the user asked for: `[tool.perflint.verify]`, checked, below what the command line says."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from perflint.errors import SettingsError
from perflint.project.settings import Settings, nearest

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|min|h)?\s*")
_UNITS = {None: 1.0, "s": 1.0, "ms": 0.001, "m": 60.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """Times are seconds."""

    bench: str = ""
    command: str = ""
    metric: str = ""
    higher_is_better: bool = False
    result: str = ""
    budget: float = 60.0
    timeout: float = 300.0
    precision: float = 0.025
    device: str = "auto"
    rtol: float = 1e-5
    atol: float = 1e-8
    seed: int = 0
    #: None for `default_threads`, 0 for what the libraries choose.
    threads: int | None = None
    link: tuple[str, ...] = ()
    min_speedup: float | None = None


def options_from(settings: Settings, given: Mapping[str, Any]) -> VerifyOptions:
    """`given` are options by field name, None where the command line says nothing. Raises SettingsError."""
    values: dict[str, Any] = {}
    for key, value in settings.verify.items():
        reader = _READERS.get(key)
        if reader is None:
            raise SettingsError(f"{settings.file}: unknown key {key!r} in tool.perflint.verify{nearest(key, _READERS)}")
        try:
            values[key.replace("-", "_")] = reader(value)
        except (TypeError, ValueError) as error:
            raise SettingsError(f"{settings.file}: verify.{key} {error}, not {value!r}") from error
    asked = {key: value for key, value in given.items() if value is not None}
    if "bench" in asked or "command" in asked:
        # The command line's workload replaces the file's.
        for key in ("bench", "command", "metric", "higher_is_better", "result"):
            values.pop(key, None)
    options = dataclasses.replace(VerifyOptions(), **{**values, **asked})
    if options.bench and options.command:
        raise SettingsError("--bench and --command are two workloads; give one")
    if not options.command and (options.metric or options.result):
        raise SettingsError("--metric and --result read what a --command prints")
    return options


def threads_of(options: VerifyOptions) -> int | None:
    """Threads of every pool in a process that is measured; None for what the libraries choose.

    One, unless `OMP_NUM_THREADS` or the options say otherwise: a pool of many threads beside others on the same
    processors is slow or fast by chance, and what it adds hides the fix.
    """
    if options.threads is not None:
        return options.threads or None
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdecimal() and int(asked) else 1


def duration(value: object) -> float:
    """Seconds of `60`, `60s`, `2m`. Raises ValueError."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = float(value)
    else:
        match = _DURATION.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise ValueError('must be a time such as "60s" or "2m"')
        seconds = float(match[1]) * _UNITS[match[2]]
    if not 0 < seconds < math.inf:
        raise ValueError("must be more than no time")
    return seconds


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("must be a string")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("must be true or false")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise TypeError("must be a number from 0")
    return float(value)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("must be a whole number")
    return value


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError("must be a whole number from 0")
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError("must be a list of strings")
    return tuple(value)


_READERS: Mapping[str, Callable[[object], Any]] = {
    "bench": _text,
    "command": _text,
    "metric": _text,
    "higher-is-better": _flag,
    "result": _text,
    "budget": duration,
    "timeout": duration,
    "precision": _number,
    "device": _text,
    "rtol": _number,
    "atol": _number,
    "seed": _whole,
    "threads": _count,
    "link": _texts,
    "min-speedup": _number,
}
