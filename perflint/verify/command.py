"""Workload 3: a command of the user's, run in a copy of the tree and timed whole or by a figure that it prints."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import select
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from perflint.errors import PerflintError
from perflint.verify import metric
from perflint.verify.counting import SIMULATED, Counts, counts_of
from perflint.verify.device import maxrss_bytes
from perflint.verify.judging import Block
from perflint.verify.measuring import Facts, Plan, Running, Timed
from perflint.verify.overlay import Overlay
from perflint.verify.processes import (
    TrialError,
    end_group,
    last_line,
    last_lines,
    perflint_command,
    pinned,
    start,
    wait,
)
from perflint.verify.reach import Lines, Seen, Tracer
from perflint.verify.spin import spin

#: More than any program makes: it runs to its end, as its result is to be compared.
_ALL_STEPS = 10**9


@dataclass(frozen=True, slots=True)
class Command:
    """`words` are run without a shell. `metric` and `result` are patterns with a group: what to measure by, and what
    must stay the same (to within `rtol` and `atol` where it is a number)."""

    words: tuple[str, ...]
    metric: str = ""
    higher_is_better: bool = False
    result: str = ""
    rtol: float = 1e-5
    atol: float = 1e-8
    #: Observed on a simulated device and counted instead of timed.
    is_simulated: bool = False


@dataclass(frozen=True)
class Done(Running):
    """A command that has run, as `measuring.Running`."""

    known: Facts
    seconds: float

    @property
    def facts(self) -> Facts:
        return self.known

    def block(self) -> Timed:
        return Timed(Block(self.seconds))

    def close(self, *, politely: bool) -> None:
        """It has ended."""


@dataclass(frozen=True, slots=True)
class CommandSide:
    """The command in one copy. `inside` is the working folder, relative to the tree."""

    command: Command
    overlay: Overlay
    inside: Path
    folder: Path
    #: Lines to look for in the untimed runs.
    watched: Lines = field(default_factory=dict)

    @property
    def is_single(self) -> bool:
        return True

    def start(self, plan: Plan, reference: Path | None, *, keeps: bool) -> Done:
        self.overlay.restore()
        if self.command.is_simulated:
            return Done(self._observed(plan, reference, keeps=keeps), 0.0)
        tracer = Tracer(self.folder, self.overlay.tree, self.watched) if reference is not None else None
        output = self.folder / "command.output"
        before = spin()
        try:
            seconds, peak = self._timed(output, plan, tracer)
            lines = metric.lines_of(output) if self.command.metric or self.command.result else []
            figure = self._figure(lines, seconds)
            facts = Facts(peak, spin=max(before, spin()), seen=tracer.seen() if tracer is not None else None)
            if self.command.result:
                return Done(self._compared(facts, lines, reference, keeps=keeps), figure)
            unread = ("there is no --result",) if reference is not None else ()
            return Done(dataclasses.replace(facts, unread=unread), figure)
        except metric.MetricError as error:
            raise TrialError(str(error)) from error
        finally:
            output.unlink(missing_ok=True)

    def _observed(self, plan: Plan, reference: Path | None, *, keeps: bool) -> Facts:
        """What `perflint observe` reports of the command, all of its steps."""
        from perflint.observe.reading import read

        output, document = self.folder / "command.output", self.folder / "observed.json"
        document.unlink(missing_ok=True)
        words = (
            *("observe", "--device", SIMULATED, "--steps", str(_ALL_STEPS), "--warmup", "0"),
            *("--timeout", f"{plan.timeout:g}", "--output", str(document), "--output-format", "json"),
            *("--", *self.command.words),
        )
        side = dataclasses.replace(self, command=dataclasses.replace(self.command, words=perflint_command(words)))
        try:
            side._timed(output, plan, None)  # noqa: SLF001 - one of its own kind
            observed = read(document)
            counts = [
                Counts(one.waits, one.launches, one.bytes_to_device, one.bytes_to_host) for one in observed.totals
            ]
            facts = Facts(counts=counts_of(counts), seen=Seen(self._in_tree(observed.ran), is_known=True))
            if not counts:
                raise TrialError("no step of it was observed")
            if not self.command.result:
                return dataclasses.replace(facts, unread=("there is no --result",))
            return self._compared(facts, metric.lines_of(output), reference, keeps=keeps)
        except (PerflintError, metric.MetricError) as error:
            raise TrialError(str(error)) from error
        finally:
            output.unlink(missing_ok=True)

    def _in_tree(self, ran: Lines) -> Lines:
        """Lines by path below the tree, from paths that begin in the working folder."""
        found = {}
        for path, lines in ran.items():
            with contextlib.suppress(ValueError):
                found[Path(path).resolve().relative_to(self.overlay.tree.resolve()).as_posix()] = lines
        return found

    def _timed(self, output: Path, plan: Plan, tracer: Tracer | None) -> tuple[float, int | None]:
        """Seconds, and bytes of peak memory where the platform tells them."""
        path = self._python_path()
        watching = {"PYTHONPATH": path} if tracer is None else tracer.environment(path)
        with output.open("wb") as sink:
            begin = time.perf_counter()
            try:
                process = start(
                    list(self.command.words),
                    self.overlay.tree / self.inside,
                    sink,
                    environment={**pinned(plan.threads), **watching},
                )
            except OSError as error:
                raise TrialError(f"{self.command.words[0]!r} cannot be started: {error.strerror}") from error
            code, peak = _wait(process, plan.timeout)
            seconds = time.perf_counter() - begin
        if code != 0:
            said = last_line(output)
            ended = f"exit code {code}" if code > 0 else f"signal {-code}"
            message = f"failed with {ended}" + (f": {said}" if said else "")
            raise TrialError(message, is_crash=True, trace=last_lines(output))
        return seconds, peak

    def _python_path(self) -> str:
        """The user's own, with what lies in the tree taken from the copy, and the copy before installed packages."""
        tree, origin = self.overlay.tree, self.overlay.origin
        own = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
        entries = []
        for entry in own:
            with contextlib.suppress(ValueError):
                entry = str(tree / Path(entry).absolute().relative_to(origin))  # noqa: PLW2901
            entries.append(entry)
        sources = [folder for folder in (tree / "src", tree) if folder.is_dir()]
        return os.pathsep.join([*entries, *(str(folder) for folder in sources)])

    def _figure(self, lines: list[str], seconds: float) -> float:
        """Something like seconds: less is better."""
        if not self.command.metric:
            return seconds
        found = metric.last_match(self.command.metric, lines)
        if found is None:
            raise TrialError(f"prints nothing that matches --metric {self.command.metric!r}")
        try:
            value = float(found.replace(",", ""))
        except ValueError:
            raise TrialError(f"prints {found[:40]!r} for --metric, which is no number") from None
        if not math.isfinite(value) or value <= 0:
            raise TrialError(f"prints {found[:40]!r} for --metric, which cannot be compared")
        return 1 / value if self.command.higher_is_better else value

    def _compared(self, facts: Facts, lines: list[str], reference: Path | None, *, keeps: bool) -> Facts:
        if reference is None:
            return facts
        found = metric.last_match(self.command.result, lines)
        if found is None:
            raise TrialError(f"prints nothing that matches --result {self.command.result!r}")
        equal, difference = True, ""
        if keeps:
            reference.write_text(found, encoding="utf-8")
        else:
            wanted = reference.read_text(encoding="utf-8")
            equal = self._agree(wanted, found)
            difference = "" if equal else f"it prints {found[:40]!r} instead of {wanted[:40]!r}"
        return dataclasses.replace(facts, equal=equal, difference=difference, compared=1)

    def _agree(self, one: str, other: str) -> bool:
        try:
            return math.isclose(float(one), float(other), rel_tol=self.command.rtol, abs_tol=self.command.atol)
        except ValueError:
            return one == other


def _wait(process: subprocess.Popen[bytes], timeout: float) -> tuple[int, int | None]:
    """Exit code and peak memory. Ends the whole group when it takes too long or anything interrupts."""
    try:
        handle = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        return wait(process, timeout), None
    try:
        if not select.select([handle], [], [], timeout)[0]:
            raise TrialError(f"hung: ended after {timeout:g} s (--timeout)")
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, maxrss_bytes(usage.ru_maxrss)
    finally:
        os.close(handle)
        end_group(process)
