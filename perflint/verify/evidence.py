"""What was measured, kept and shown again: one JSON file a run. Needs neither torch nor anything else to be read.

Measurements that ship with perflint lie in the package; those of a project lie in its cache. A file that somebody else
made, or that is damaged, can do no more than be ignored.
"""

from __future__ import annotations

import importlib.resources
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from perflint.engine.cache import FOLDER, keep_out_of_git
from perflint.errors import PerflintError
from perflint.system.atomic import write_whole
from perflint.verify.results import Machine, Result, Verdict, result_from_json, to_json
from perflint.verify.tables import harmless, pays_after, seconds, size, verdict_of

#: Folder of measurements below a project's cache, and below this package.
STORED, SHIPPED = "evidence", "measurements"
NOT_YET = "not measured yet"
_MOST_BYTES = 5_000_000
_MOST_FILES = 200


@dataclass(frozen=True, slots=True)
class Measured:
    """One result with where and when it was measured."""

    device: str
    torch: str
    versions: tuple[str, ...]
    date: str
    result: Result

    def line(self) -> str:
        """`100 x 1k: 4.88x as fast (4.10 to 6.33), 2.85 ms to 654 us, memory 3.17 MiB to 1.23 MiB`."""
        result = self.result
        parts = [f"{result.size}: {verdict_of(result)}" if result.size else verdict_of(result)]
        if result.ratio is not None and result.ratio_low is not None and result.ratio_high is not None:
            parts.append(f"{result.ratio:.3g}x ({result.ratio_low:.3g} to {result.ratio_high:.3g})")
            parts.append(f"{seconds(result.before_s)} to {seconds(result.after_s)}")
        if result.peak_before is not None and result.peak_after is not None:
            parts.append(f"memory {size(result.peak_before)} to {size(result.peak_after)}")
        if result.first_before_s is not None and result.first_after_s is not None:
            parts.append(f"first call {seconds(result.first_before_s)} to {seconds(result.first_after_s)}")
            parts.append(f"pays after {pays_after(result)}")
        return harmless(", ".join(parts))

    def rank(self) -> tuple[bool, str]:
        """What has a figure goes above what has none, whatever their dates."""
        return self.result.verdict is not Verdict.NOT_MEASURABLE, self.date

    def why_not(self) -> str:
        """`512 images: only 8 trials in 28 s; try --budget 49s`, of what has no figure."""
        result = self.result
        return harmless(": ".join(part for part in (result.size, result.reason) if part))

    def where(self) -> str:
        """`cpu (Some Processor), torch 2.13.0, 2026-11-21`."""
        return harmless(", ".join([self.device, f"torch {self.torch}", *self.versions, self.date[:10]]))


def measured(code: str, project: Path | None = None) -> list[Measured]:
    """All that is known about the rule `code`: the newest measurement on each device, newest first.

    `project` is the root of a project whose own measurements count too.
    """
    newest: dict[tuple[str, str, str], Measured] = {}
    for one in _read_all(project):
        key = (one.device, one.result.workload, one.result.size)
        if one.result.code == code and (key not in newest or newest[key].rank() < one.rank()):
            newest[key] = one
    return sorted(newest.values(), key=lambda one: (one.date, one.device), reverse=True)


def lines(code: str, project: Path | None = None) -> list[str]:
    """What `perflint explain` prints under *Measured*: `not measured yet` where there is nothing, and why if known."""
    shown: list[str] = []
    everything = measured(code, project)
    known = [one for one in everything if one.result.verdict is not Verdict.NOT_MEASURABLE]
    above = ""
    for one in known:
        heading = f"{one.where()} - {harmless(one.result.workload)}"
        if heading != above:
            shown.append(heading)
            above = heading
        shown.append(f"  {one.line()}")
    if shown:
        return shown
    return [NOT_YET, *(f"  {one.where()}: {one.why_not()}" for one in everything if one.result.reason)]


def folder_of(project: Path) -> Path:
    return project / FOLDER / STORED


def store(folder: Path, machine: Machine, results: Iterable[Result], *, memory: str) -> Path | None:
    """Keep what was measured; None when nothing was. Raises PerflintError when it cannot be written."""
    # What could not be measured is worth knowing beside what was, not by itself.
    rows = list(results)
    if all(result.verdict is Verdict.NOT_MEASURABLE for result in rows):
        return None
    now = datetime.now(timezone.utc)
    file = folder / f"{now:%Y%m%dT%H%M%S%f}-{machine.kind}-{os.getpid()}.json"
    text = json.dumps(to_json(machine, rows, memory=memory, date=now.isoformat(timespec="seconds")), indent=1)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if folder.parent.name == FOLDER:
            keep_out_of_git(folder.parent)
        write_whole(file, f"{text}\n".encode())
    except OSError as error:
        raise PerflintError(f"{folder}: measurements cannot be kept: {error.strerror or error}") from error
    return file


def _read_all(project: Path | None) -> Iterator[Measured]:
    for text in _texts(project):
        try:
            table = json.loads(text)
            yield from _rows(table)
        except (ValueError, RecursionError, AttributeError, TypeError):
            continue


def _rows(table: dict[str, Any]) -> Iterator[Measured]:
    about = [table.get(name) for name in ("device", "torch", "date")]
    versions = table.get("versions", [])
    if not all(isinstance(text, str) for text in [*about, *versions]):
        return
    device, torch, date = (str(text) for text in about)
    for row in table.get("results", []):
        try:
            yield Measured(device, torch, tuple(versions), date, result_from_json(row))
        except ValueError:
            continue


def _texts(project: Path | None) -> Iterator[str]:
    shipped = importlib.resources.files("perflint.verify") / SHIPPED
    if shipped.is_dir():
        for entry in sorted(shipped.iterdir(), key=lambda entry: entry.name):
            if entry.name.endswith(".json"):
                yield entry.read_text(encoding="utf-8")
    if project is None:
        return
    folder = folder_of(project)
    try:
        files = sorted(folder.glob("*.json"))[-_MOST_FILES:] if not folder.is_symlink() else []
        for file in files:
            if file.is_file() and not file.is_symlink() and file.stat().st_size <= _MOST_BYTES:
                yield file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
