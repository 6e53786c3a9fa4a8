"""Workload 1: the micro-benchmarks that rules carry. Finds them and measures them."""

from __future__ import annotations

import contextlib
import importlib.resources
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perflint.rule_api.registry import fixture_folder
from perflint.verify.counting import Counts, counts_of
from perflint.verify.judging import Block
from perflint.verify.launch import Launcher, Live
from perflint.verify.measuring import Facts, Plan, Row, Run, Running, Timed
from perflint.verify.reach import Seen
from perflint.verify.results import Machine, Result

if TYPE_CHECKING:
    from perflint.rule_api.rule import Rule

MEASURE = "measure.py"


@contextlib.contextmanager
def benchmark_file(rule: type[Rule]) -> Iterator[Path | None]:
    """The `measure.py` of `rule`, for as long as the context lasts; None where it has none."""
    folder = fixture_folder(rule)
    file = None if folder is None else folder / MEASURE
    if file is None or not file.is_file():
        yield None
        return
    with importlib.resources.as_file(file) as path:
        yield path


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One `measure.py` on one device. `lacking` says why it cannot be measured here, empty when it can."""

    code: str
    file: Path
    device: str
    caption: str
    sizes: tuple[str, ...]
    lacking: str
    compiles: bool = False


def describe(launcher: Launcher, code: str, file: Path, device: str, timeout: float) -> Benchmark:
    """Raises TrialError when the file cannot be loaded."""
    reply = launcher.ask({"kind": "describe", "file": str(file), "device": device}, timeout)
    return Benchmark(
        code, file, device, str(reply["caption"]), tuple(reply["sizes"]), str(reply["lacking"]), reply["compiles"]
    )


def machine(launcher: Launcher, device: str, timeout: float) -> tuple[str, Machine]:
    """The device's name for torch, and what it is. Raises TrialError when there is none such."""
    reply = launcher.ask({"kind": "machine", "device": device}, timeout)
    name = str(reply.pop("device"))
    return name, Machine(**{**reply, "versions": tuple(reply["versions"])}, threads=launcher.threads)


@dataclass(frozen=True, slots=True)
class BenchmarkSide:
    """One side of a rule's benchmark, as `measuring.Side`."""

    launcher: Launcher
    benchmark: Benchmark
    size: str
    side: str
    compiled: Path

    @property
    def is_single(self) -> bool:
        return False

    def start(self, plan: Plan, reference: Path | None, *, keeps: bool) -> LiveRun:
        request = {
            "kind": "benchmark",
            "file": str(self.benchmark.file),
            "device": self.benchmark.device,
            "size": self.size,
            "side": self.side,
            "seed": plan.seed,
            "block": plan.block,
            "threads": plan.threads,
            "reference": str(reference) if reference else None,
            "keeps": keeps,
            "compiled": str(self.compiled),
            "compiles": self.benchmark.compiles,
        }
        # The first process of all finds out how processes can be started here; others start beside each other.
        return LiveRun(self.launcher.open(request, plan.timeout) if reference else self.launcher.begin(request), plan)


class LiveRun(Running):
    """A side in a process that stays, as `measuring.Running`. `notes` are for the facts."""

    def __init__(self, live: Live, plan: Plan, notes: tuple[str, ...] = (), seen: Seen | None = None) -> None:
        self._live = live
        self._plan = plan
        self._notes = notes
        self._seen = seen

    @property
    def facts(self) -> Facts:
        reply = self._live.reply(self._plan.timeout)
        return Facts(
            peak=reply.get("peak"),
            equal=reply.get("equal"),
            difference=str(reply.get("difference", "")),
            first=reply.get("first"),
            notes=self._notes,
            unread=tuple(reply.get("unread", ())),
            compared=int(reply.get("compared", 0)),
            seen=self._seen,
            counts=counts_of([Counts(**one) for one in reply.get("counts", ())]),
        )

    def block(self) -> Timed:
        reply = self._live.ask({"block": True}, self._plan.timeout)
        block = Block(
            float(reply["seconds"]),
            bool(reply["disturbed"]),
            int(reply["calls"]),
            reply["waited"],
            tuple(reply["times"]),
        )
        return Timed(block, reply.get("device_seconds"))

    def close(self, *, politely: bool) -> None:
        self._live.close(politely=politely)


def measure(
    launcher: Launcher,
    benchmark: Benchmark,
    plan: Plan,
    folder: Path,
    sizes: Sequence[str] | None = None,
    *,
    progress: Callable[[str, float], None] = lambda *_: None,
    sides: tuple[str, str] = ("before", "after"),
) -> Iterator[Result]:
    """One result for each size. `sides` lets a self-test hold a side against itself."""
    if benchmark.lacking:
        yield Row(benchmark.code, benchmark.caption).lacking(benchmark.lacking)
        return
    for number, size in enumerate(sizes if sizes is not None else benchmark.sizes):
        row = Row(benchmark.code, benchmark.caption, size)
        one, other = (
            BenchmarkSide(launcher, benchmark, size, side, folder / f"{benchmark.code}-{number}-{place}")
            for place, side in enumerate(sides)
        )

        def report(share: float, size: str = size) -> None:
            progress(size, share)

        yield Run(row, (one, other), plan, folder / "reference.pt", report).result()
