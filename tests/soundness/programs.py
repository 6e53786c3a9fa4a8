"""Programs that were written to break the fixes that are called safe, and what becomes of each.

`programs/<CODE>/*.py` holds them: plain text to this project, neither linted nor typed. A file is one program, or
several with a part in common:

    import torch                      everything above the first `# program:` is the common part, which begins each

    # program: kept in a global       a program of its own, in words that say what would break
    # expect: no safe fix             what is expected of the rule's safe fixes, see below
    # simulate: late copies           what the machine of the run pretends, see below
    ...
    # file: lib/layers.py             from here on the text of another file of the same program

`expect` is `fixed` (a safe fix is made, for else silence would pass for soundness), `no safe fix` (none is offered:
what goes wrong cannot be seen on a CPU) or left out. In every case the program ends with exit code 0, and prints the
same and ends the same after its safe fixes. A program prints what matters of it: gradients, losses, types, sums of
parameters.

`simulate` lists `late copies` (copies that the host does not wait for take place when their result is first used) and
`pinning` (CUDA is said to be there, and loaders that pin call `pin_memory` of what they hand out).
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from perflint.cli.fixing import fix_report
from perflint.engine import Options, check
from perflint.finding import Applicability
from perflint.project.discovery import discover
from perflint.project.settings import load_settings
from perflint.rule_api.registry import load_rules
from perflint.rule_api.rule import Rule

__all__ = ["FIXED", "NO_SAFE_FIX", "Fixed", "Outcome", "Program", "Runner", "find_programs", "fix", "wrong_with"]

HERE = Path(__file__).parent
MAIN = "main.py"
FIXED, NO_SAFE_FIX = "fixed", "no safe fix"
_EXPECTATIONS = {FIXED, NO_SAFE_FIX}
_SIMULATIONS = {"late copies", "pinning"}


@dataclass(slots=True)
class Program:
    """One program: its files by their relative paths, the first of which runs."""

    code: str
    name: str
    texts: dict[str, str] = field(default_factory=lambda: {MAIN: ""})
    expect: str = ""
    simulate: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.code} {self.name}"


class Fixed(NamedTuple):
    """A program's files after its safe fixes, and the codes of those that were made or are offered."""

    texts: Mapping[str, str]
    codes: frozenset[str]


class Outcome(NamedTuple):
    """What can be seen of a run: exit code (-1: it did not end in time), what it printed, the error that ended it."""

    status: int
    printed: str
    error: str


def find_programs(root: Path = HERE / "programs") -> list[Program]:
    """All programs below a folder of folders named for rules. Raises ValueError for a header that does not read."""
    files = sorted(path for path in root.glob("*/*.py") if path.is_file())
    return [program for path in files for program in _read(path)]


def _read(path: Path) -> Iterator[Program]:
    program = Program(path.parent.name, path.stem)
    common, name, seen = "", MAIN, False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(keepends=True), 1):
        key, _, value = line.removeprefix("# ").partition(": ") if line.startswith("# ") else ("", "", "")
        value = value.strip()
        if key == "program":
            if seen:
                yield program
            else:
                common = program.texts[MAIN]
            program = Program(path.parent.name, f"{path.stem}: {value}", {MAIN: common})
            name, seen = MAIN, True
        elif key == "file":
            name = value
            program.texts[name] = ""
        elif key == "expect" and value in _EXPECTATIONS:
            program.expect = value
        elif key == "simulate" and _SIMULATIONS.issuperset(value.split(", ")):
            program.simulate = tuple(value.split(", "))
        elif key in {"expect", "simulate"}:
            raise ValueError(f"{path.name}:{number}: {key} cannot be {value!r}")
        else:
            program.texts[name] += line
    yield program


def fix(program: Program, rules: list[type[Rule]] | None = None) -> Fixed:
    """Make all safe fixes that there are, in memory. Raises AssertionError for a program that cannot be read."""
    with _project(program.texts):
        settings = load_settings(Path())
        discovery = discover(["."], settings)
        options = Options(settings, [rule() for rule in rules or load_rules()], cache=False)
        report = check(discovery, options)
        assert not report.errors, report.errors
        fixing = fix_report(discovery, options, report, Applicability.SAFE)
    offered = {
        finding.code
        for finding in report.findings
        if finding.fix is not None and finding.fix.applicability is Applicability.SAFE
    }
    made = {finding.code for file in fixing.outcome.files for finding in file.taken}
    texts = {**program.texts, **{file.source.path: file.text for file in fixing.outcome.files}}
    return Fixed(texts, frozenset(offered | made))


@contextlib.contextmanager
def _project(texts: Mapping[str, str]) -> Iterator[None]:
    """Work inside a temporary folder that holds `texts`, with nothing around it."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="perflint-sound-") as name:
        folder = Path(name)
        _write({**texts, "pyproject.toml": "[tool.perflint]\n"}, folder)
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def _write(texts: Mapping[str, str], folder: Path) -> None:
    for name, text in texts.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


class Runner:
    """Runs programs in children of one process that has imported torch: an import takes longer than a program."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "forking.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def close(self) -> None:
        with self._process:  # which closes what leads to it, and waits
            pass

    def run(self, texts: Mapping[str, str], simulate: tuple[str, ...] = (), seconds: float = 60) -> Outcome:
        """Run the first of `texts`. Raises RuntimeError when the process that runs programs is gone."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory(prefix="perflint-sound-") as name:
            _write(texts, Path(name))
            job = {"folder": name, "main": next(iter(texts)), "simulate": simulate, "seconds": seconds}
            print(json.dumps(job), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process that runs programs has ended")
        return Outcome(**json.loads(line))


def wrong_with(program: Program, fixed: Fixed, runner: Runner) -> Iterator[str]:
    """What a program shows against its fixes, in words; nothing when all is as it says."""
    before = runner.run(program.texts, program.simulate)
    if before.status:
        yield f"the program itself ends with {before.status}: {before.error}"
        return
    if program.expect == FIXED and program.code not in fixed.codes:
        yield "no safe fix is made"
    if program.expect == NO_SAFE_FIX and program.code in fixed.codes:
        yield "a safe fix is offered"
    if fixed.texts == program.texts:
        return
    after = runner.run(fixed.texts, program.simulate)
    if after != before:
        told = f"; it ends with {after.status}: {after.error}" if after.status else ""
        yield f"after {', '.join(sorted(fixed.codes))} it prints\n{after.printed}instead of\n{before.printed}{told}"
