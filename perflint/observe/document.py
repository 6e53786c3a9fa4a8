"""The JSON of an observation, as `perflint observe` writes it; `reading` reads it for `check --observed`.
`schemas.observation` says what is in it.

Beside what a reader wants to see (each line with its place, counts and modelled cost) it holds the kept step whole, so
that it can be replayed for other hardware, and the lines that ran with the hashes of their functions.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from perflint import __version__
from perflint.errors import PerflintError
from perflint.observe.functions import innermost
from perflint.observe.model.cost import Costs, StepTime
from perflint.observe.model.hardware import hardware
from perflint.observe.trace import (
    KINDS,
    PHASES,
    Frame,
    Kind,
    Observation,
    Phase,
    Region,
    Site,
    Step,
    StepTotal,
)
from perflint.system.atomic import write_whole

#: Of the format. A file of another one is refused.
VERSION = 1
#: The name of the file where no other is given.
FILE = "perflint-observed.json"

Json = dict[str, Any]
#: A line to the model: site, kind and phase.
_Key = tuple[int, Kind, Phase]


# Writing


def as_json(observation: Observation, findings: Mapping[int, str] | None = None, directory: str = "") -> str:
    """The whole document, one line of the program a line. `findings` has the code of the rule that found the line,
    by index into `observation.lines`. `directory` leads from the document's folder to the one that paths start at.
    """
    costs = _costs(observation)
    head = {
        "version": VERSION,
        "perflint": __version__,
        "device": observation.device,
        "hardware": observation.hardware,
        "torch": observation.torch,
        "python": observation.python,
        "program": list(observation.program),
        "directory": directory,
        "steps": observation.steps,
        "warmup": observation.warmup,
        "step": _step(observation, None if costs is None else costs.time),
        "totals": [_total(one) for one in observation.totals],
        "errors": list(observation.errors),
        "ended": observation.ended,
    }
    rest = {
        "ran": {path: _ranges(lines) for path, lines in sorted(observation.ran.items())},
        "functions": {path: [_region(one) for one in found] for path, found in sorted(observation.regions.items())},
        "trace": _trace(observation.step),
    }
    lines = _listed(_lines(observation, findings or {}, costs))
    sites = _listed([_site(site) for site in observation.sites])
    return f'{_dump(head)[:-1]},\n"lines": {lines},\n"sites": {sites},\n{_dump(rest)[1:]}\n'


def write(observation: Observation, file: Path, findings: Mapping[int, str] | None = None) -> None:
    """Raises PerflintError."""
    try:
        directory = Path(os.path.relpath(Path.cwd(), file.absolute().parent)).as_posix()
    except ValueError:  # another drive
        directory = ""
    try:
        write_whole(file, as_json(observation, findings, directory).encode("ascii"))
    except OSError as error:
        raise PerflintError(f"{file}: cannot be written: {error.strerror or error}") from error


def _listed(items: Iterable[Json]) -> str:
    dumped = [_dump(item) for item in items]
    return "[\n" + ",\n".join(dumped) + "\n]" if dumped else "[]"


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False)


def _costs(observation: Observation) -> Costs[_Key] | None:
    if observation.step is None:
        return None
    on = hardware(observation.hardware)
    return Costs(observation.step.events, on, lambda event: (event.site, event.kind, event.phase))


def _step(observation: Observation, time: StepTime | None) -> Json | None:
    """Means over the steady steps, and the model's time of the kept one."""
    totals = observation.totals
    if not totals:
        return None
    counted = {
        name: _number(sum(getattr(one, name) for one in totals) / len(totals))
        for name in ("waits", "launches", "bytes_to_device", "bytes_to_host")
    }
    measured = [one.measured_us for one in totals if one.measured_us is not None]
    modelled: Json = dict.fromkeys(("modelled_ms", "without_waits_ms", "host_ms", "device_ms", "bound_by"))
    if time is not None:
        modelled = {
            "modelled_ms": _ms(time.step_ms),
            "without_waits_ms": _ms(time.without_waits_ms),
            "host_ms": _ms(time.host_ms),
            "device_ms": _ms(time.device_ms),
            "bound_by": time.bound_by,
        }
    return {**counted, **modelled, "measured_ms": _ms(sum(measured) / len(measured) / 1000) if measured else None}


def _lines(observation: Observation, findings: Mapping[int, str], costs: Costs[_Key] | None) -> list[Json]:
    return [_line(observation, index, costs, findings.get(index)) for index in range(len(observation.lines))]


def _line(observation: Observation, index: int, costs: Costs[_Key] | None, finding: str | None) -> Json:
    one = observation.lines[index]
    site = observation.sites[one.site]
    around = innermost(observation.regions.get(site.path, ()), site.line)
    cost = costs.alone_ms([(one.site, one.kind, one.phase)]) if one.waits and costs is not None else None
    return {
        **_place(site),
        "kind": one.kind,
        "waits": one.waits,
        "per_step": _number(one.total / observation.steps) if observation.steps else 0,
        "bytes": _number(one.bytes / observation.steps) if observation.steps else 0,
        "modelled_ms": None if cost is None else _ms(cost),
        "phase": one.phase,
        "in_backward": one.in_backward,
        "operation": one.operation,
        "counts": {str(step): count for step, count in sorted(one.counts.items())},
        "bytes_in_all": one.bytes,
        "function": "" if around is None else around.name,
        "function_hash": "" if around is None else around.hash,
        "stack": [_frame(frame) for frame in site.stack],
        "finding": finding,
        "site": one.site,
    }


def _place(site: Site) -> Json:
    return {
        "path": site.path,
        "line": site.line,
        "column": site.column,
        "end_line": site.end_line,
        "end_column": site.end_column,
    }


def _site(site: Site) -> Json:
    return {**_place(site), "stack": [_frame(frame) for frame in site.stack]}


def _frame(frame: Frame) -> Json:
    shown: Json = {"path": frame.path, "line": frame.line, "function": frame.function}
    return {**shown, "library": True} if frame.library else shown


def _total(total: StepTotal) -> Json:
    measured = None if total.measured_us is None else _ms(total.measured_us / 1000)
    return {
        "index": total.index,
        "waits": total.waits,
        "launches": total.launches,
        "bytes_to_device": total.bytes_to_device,
        "bytes_to_host": total.bytes_to_host,
        "measured_ms": measured,
    }


def _region(region: Region) -> Json:
    return {"line": region.line, "end_line": region.end_line, "name": region.name, "hash": region.hash}


def _trace(step: Step | None) -> Json | None:
    """Rows of numbers, with names by index: a step has thousands of operations."""
    if step is None:
        return None
    names: dict[str, int] = {}
    rows = [
        [
            names.setdefault(event.operation, len(names)),
            KINDS.index(event.kind),
            int(event.waits),
            event.site,
            PHASES.index(event.phase),
            _number(event.flops),
            event.bytes,
            event.launches,
            int(event.pinned),
            event.dtype,
            event.host_us,
        ]
        for event in step.events
    ]
    return {"index": step.index, "operations": list(names), "kinds": list(KINDS), "phases": list(PHASES), "rows": rows}


def _ranges(lines: Iterable[int]) -> list[list[int]]:
    """First and last of each run of lines."""
    found: list[list[int]] = []
    for line in sorted(lines):
        if found and found[-1][1] == line - 1:
            found[-1][1] = line
        else:
            found.append([line, line])
    return found


def _number(value: float) -> float:
    return int(value) if value == int(value) else round(value, 6)


def _ms(value: float) -> float:
    return round(value, 6)
