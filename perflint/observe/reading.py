"""Reads an observation back from its JSON (`document`), and says where a document does not fit."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from perflint.errors import PerflintError
from perflint.observe.document import FILE, VERSION
from perflint.observe.model.hardware import hardware
from perflint.observe.trace import (
    KINDS,
    PHASES,
    Event,
    Frame,
    Kind,
    LineCount,
    Observation,
    Phase,
    Region,
    Site,
    Step,
    StepTotal,
)

T = TypeVar("T")

_AGAIN = "; 'perflint observe --output FILE -- python TRAIN.py' makes it"

#: Of any number, so that sums stay finite.
_MOST = 1e300


class _Wrong(Exception):  # noqa: N818 - never leaves this module
    """What does not fit, and where: `lines[3].kind`."""


@dataclass(frozen=True, slots=True)
class _Value:
    """Something read, and where it stands in the document."""

    value: object
    at: str = ""

    def __getitem__(self, key: str) -> _Value:
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        if key not in self.value:
            raise _Wrong(f"{self.at + '.' if self.at else ''}{key} is missing")
        return _Value(self.value[key], f"{self.at}.{key}" if self.at else key)

    def get(self, key: str, default: object) -> _Value:
        return self[key] if isinstance(self.value, dict) and key in self.value else _Value(default, key)

    def items(self) -> list[_Value]:
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        return [_Value(one, f"{self.at}[{index}]") for index, one in enumerate(self.value)]

    def pairs(self) -> list[tuple[str, _Value]]:
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return [(key, _Value(value, f"{self.at}[{key!r}]")) for key, value in self.value.items()]

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong("a text")
        return self.value

    def whole(self, least: int = 0) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < least:
            raise self.wrong(f"a whole number from {least}")
        return self.value

    def number(self) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            raise self.wrong("a number")
        if not 0 <= self.value < _MOST:
            raise self.wrong("a number from 0")
        return float(self.value)

    def maybe(self, read: Callable[[_Value], T]) -> T | None:
        return None if self.value is None else read(self)

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def one_of(self, names: Sequence[T]) -> T:
        if self.value not in names:
            raise self.wrong(f"one of {', '.join(map(str, names))}")
        return names[names.index(self.value)]

    def wrong(self, wanted: str) -> _Wrong:
        shown = repr(self.value)
        return _Wrong(
            f"{self.at or 'the document'} is {shown if len(shown) <= 40 else shown[:37] + '...'}, not {wanted}"
        )


def read(file: Path) -> Observation:
    """An observation, its paths from the working directory. Raises PerflintError."""
    try:
        if file.exists() and not file.is_file():  # a device may have no end
            raise PerflintError(f"{file}: not a regular file")
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        hint = _AGAIN if isinstance(error, FileNotFoundError) else ""
        raise PerflintError(f"{file}: cannot be read: {error.strerror or error}{hint}") from error
    except UnicodeDecodeError as error:
        raise PerflintError(f"{file}: not an observation: not UTF-8{_AGAIN}") from error
    observation, directory = _parsed(text, str(file))
    return _rebased(observation, file.absolute().parent / directory) if directory is not None else observation


def parse(text: str, name: str = FILE) -> Observation:
    """An observation, its paths as they are. Raises PerflintError, which calls the document `name`."""
    return _parsed(text, name)[0]


def _parsed(text: str, name: str) -> tuple[Observation, str | None]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        cut = " (is it truncated?)" if text.lstrip().startswith("{") and not text.rstrip().endswith("}") else ""
        raise PerflintError(f"{name}: not an observation: not valid JSON{cut}: {error}{_AGAIN}") from error
    document = _Value(data)
    try:
        version = document["version"].value
        if version != VERSION:
            raise PerflintError(
                f"{name}: an observation of another version ({version!r}; this perflint reads {VERSION}){_AGAIN}"
            )
        directory = document.get("directory", "").text()
        return _observation(document), directory or None
    except _Wrong as error:
        raise PerflintError(f"{name}: not an observation: {error}{_AGAIN}") from error


def _observation(document: _Value) -> Observation:
    sites = [_read_site(one) for one in document["sites"].items()]
    return Observation(
        device=document["device"].text(),
        torch=document["torch"].text(),
        hardware=_known(document["hardware"]),
        steps=document["steps"].whole(),
        warmup=document["warmup"].whole(),
        sites=sites,
        lines=[_read_line(one, len(sites)) for one in document["lines"].items()],
        step=document["trace"].maybe(lambda trace: _read_trace(trace, len(sites))),
        totals=[_read_total(one) for one in document["totals"].items()],
        ran={path: frozenset(_read_ranges(value)) for path, value in document["ran"].pairs()},
        regions={
            path: tuple(_read_region(one) for one in value.items()) for path, value in document["functions"].pairs()
        },
        errors=[one.text() for one in document["errors"].items()],
        ended=document["ended"].text(),
        program=tuple(one.text() for one in document["program"].items()),
        python=document["python"].text(),
    )


def _known(value: _Value) -> str:
    try:
        return hardware(value.text()).key
    except PerflintError as error:
        raise _Wrong(f"{value.at}: {error}") from error


def _read_site(value: _Value) -> Site:
    line = value["line"].whole(1)
    return Site(
        value["path"].text(),
        line,
        value["column"].whole(1),
        value["end_line"].whole(line),
        value["end_column"].whole(1),
        tuple(_read_frame(one) for one in value["stack"].items()),
    )


def _read_frame(value: _Value) -> Frame:
    library = value.get("library", default=False).flag()
    return Frame(value["path"].text(), value["line"].whole(), value["function"].text(), library)


def _read_line(value: _Value, sites: int) -> LineCount:
    return LineCount(
        site=_index(value["site"], sites),
        kind=value["kind"].one_of(KINDS),
        waits=value["waits"].flag(),
        phase=value["phase"].one_of(PHASES),
        counts={_step_number(step, value): count.whole() for step, count in value["counts"].pairs()},
        bytes=value["bytes_in_all"].whole(),
        in_backward=value["in_backward"].flag(),
        operation=value["operation"].text(),
    )


def _step_number(step: str, line: _Value) -> int:
    if not step.isdecimal():
        raise _Wrong(f"{line.at}.counts has {step!r}, which is no number of a step")
    return int(step)


def _index(value: _Value, length: int) -> int:
    index = value.whole()
    if index >= length:
        raise value.wrong(f"below {length}")
    return index


def _read_total(value: _Value) -> StepTotal:
    measured = value["measured_ms"].maybe(_Value.number)
    return StepTotal(
        value["index"].whole(),
        value["waits"].whole(),
        value["launches"].whole(),
        value["bytes_to_device"].whole(),
        value["bytes_to_host"].whole(),
        None if measured is None else measured * 1000,
    )


def _read_region(value: _Value) -> Region:
    line = value["line"].whole(1)
    return Region(line, value["end_line"].whole(line), value["name"].text(), value["hash"].text())


def _read_ranges(value: _Value) -> list[int]:
    found: list[int] = []
    for pair in value.items():
        ends = [one.whole(1) for one in pair.items()]
        if len(ends) != 2 or ends[1] - ends[0] > 1_000_000:
            raise pair.wrong("the first and the last line of a run")
        found.extend(range(ends[0], ends[1] + 1))
    return found


def _read_trace(value: _Value, sites: int) -> Step:
    operations = [one.text() for one in value["operations"].items()]
    kinds = [one.one_of(KINDS) for one in value["kinds"].items()]
    phases = [one.one_of(PHASES) for one in value["phases"].items()]
    step = Step(value["index"].whole())
    for row in value["rows"].items():
        step.events.append(
            _plain_event(row.value, operations, kinds, phases, sites) or _event(row, operations, kinds, phases, sites)
        )
    return step


def _plain_event(
    row: object, operations: Sequence[str], kinds: Sequence[Kind], phases: Sequence[Phase], sites: int
) -> Event | None:
    """A row as it was written, without a look at what would be wrong with another: a step has thousands of them."""
    if not isinstance(row, list) or [type(cell) for cell in row] not in _PLAIN:
        return None
    operation, kind, waits, site, phase, flops, size, launches, pinned, dtype, host_us = row
    least = min(operation, kind, waits, site, phase, flops, size, launches, pinned, host_us or 0)
    if not least >= 0 or operation >= len(operations) or kind >= len(kinds) or phase >= len(phases) or site >= sites:
        return None
    if not max(flops, host_us or 0) < _MOST:
        return None
    return Event(
        operations[operation],
        kinds[kind],
        bool(waits),
        site,
        phases[phase],
        float(flops),
        size,
        launches,
        bool(pinned),
        dtype,
        host_us if host_us is None else float(host_us),
    )


_PLAIN = [
    [int, int, int, int, int, flops, int, int, int, str, host]
    for flops in (int, float)
    for host in (type(None), float, int)
]


def _event(row: _Value, operations: Sequence[str], kinds: Sequence[Kind], phases: Sequence[Phase], sites: int) -> Event:
    cells = row.items()
    if len(cells) != 11:
        raise row.wrong("a row of 11 values")
    return Event(
        operation=operations[_index(cells[0], len(operations))],
        kind=kinds[_index(cells[1], len(kinds))],
        waits=bool(cells[2].whole()),
        site=_index(cells[3], sites),
        phase=phases[_index(cells[4], len(phases))],
        flops=cells[5].number(),
        bytes=cells[6].whole(),
        launches=cells[7].whole(),
        pinned=bool(cells[8].whole()),
        dtype=cells[9].text(),
        host_us=cells[10].maybe(_Value.number),
    )


# Paths


def _rebased(observation: Observation, directory: Path) -> Observation:
    """With paths from the working directory, where the observation was made in `directory`.

    A document that was carried elsewhere leads nowhere; its paths are then taken as they are.
    """
    from perflint.project.discovery import display_path

    paths = {*observation.ran, *observation.regions, *(site.path for site in observation.sites)}
    paths |= {frame.path for site in observation.sites for frame in site.stack if not frame.library}
    moved = {path: display_path(Path(os.path.normpath(directory / path))) for path in paths}
    if sum(Path(path).is_file() for path in moved.values()) < sum(Path(path).is_file() for path in paths):
        return observation
    return replace(
        observation,
        sites=[_site_moved(site, moved) for site in observation.sites],
        ran={moved[path]: lines for path, lines in observation.ran.items()},
        regions={moved[path]: found for path, found in observation.regions.items()},
    )


def _site_moved(site: Site, moved: Mapping[str, str]) -> Site:
    stack = tuple(replace(frame, path=moved.get(frame.path, frame.path)) for frame in site.stack)
    return replace(site, path=moved[site.path], stack=stack)
