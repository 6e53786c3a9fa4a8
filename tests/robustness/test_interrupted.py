"""Whatever ends a run, each file is its old self or its new one, nothing is left behind, and the next run works."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
#: Moments at which `fix --apply` is ended. `PERFLINT_KILLS` asks for more.
KILLS = int(os.environ.get("PERFLINT_KILLS", "10"))
FILES = 8
OLD = """\

import gc
import torch


def train(model, loader, optimizer):
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()
        torch.cuda.empty_cache()
        gc.collect()
"""
#: Runs the command line in a fork of a process that has imported everything, so that hundreds of runs take seconds.
SERVE = """\
import contextlib, io, os, sys
from perflint.cli.app import run
import perflint.fixes.write
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    run(["fix", "--no-cache", "--select", "TPL305", "."])
while sys.stdin.readline():
    child = os.fork()
    if child == 0:
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.setpgid(0, 0)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        code = 1
        try:
            code = run(["fix", "--apply", "--no-cache", "--select", "TPL305", "."])
        finally:
            os._exit(code)
    print(child, flush=True)
    _, status = os.waitpid(child, 0)
    print(status, flush=True)
"""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a run is ended in a fork")


def lay_out(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    fill(folder)


def fill(folder: Path) -> None:
    """Put the project back as it was. The folder stays: it is where the runs are."""
    for one in folder.iterdir():
        one.unlink()
    (folder / "perflint.toml").write_text("")
    for number in range(FILES):
        (folder / f"train_{number:02}.py").write_text(OLD)


def perflint(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "perflint", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def contents(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in sorted(folder.iterdir()) if file.is_file()}


class _Served:
    """Runs that begin at once, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVE],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._number()

    def ended(self) -> int:
        """The wait status of the run."""
        return self._number()

    def _number(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate(timeout=60)


def _takes(served: _Served, folder: Path) -> float:
    """Seconds of a run that nobody ends."""
    fill(folder)
    began = time.monotonic()
    served.begin()
    assert os.waitstatus_to_exitcode(served.ended()) == 1
    return time.monotonic() - began


@pytest.mark.usefixtures("heeded_signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_whole_files(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "project"
    lay_out(folder)
    complete = perflint(folder, "fix", "--apply", "--no-cache", "--select", "TPL305", ".")
    assert complete.returncode == 1, complete.stderr
    new = contents(folder)["train_00.py"]
    assert new != OLD
    dice = random.Random(int(number))
    lay_out(folder)
    names = {f"train_{each:02}.py" for each in range(FILES)} | {"perflint.toml"}
    with contextlib.closing(_Served(folder)) as served:
        takes = min(_takes(served, folder) for _ in range(4))
        cut_short = 0
        for _ in range(KILLS):
            fill(folder)
            child = served.begin()
            # Most of the moments fall into the time of writing, which comes last.
            time.sleep(takes * (dice.random() if dice.random() < 0.3 else dice.uniform(0.3, 1.0)))
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)
            code = os.waitstatus_to_exitcode(served.ended())
            after = contents(folder)
            left = [text for name, text in after.items() if name.startswith("train_")]
            assert all(text in (OLD, new) for text in left), "a file that is neither old nor new"
            assert len(left) == FILES
            if number != signal.SIGKILL:
                assert set(after) == names, "something was left"
            assert code != 0
            cut_short += left.count(new) < FILES
    assert cut_short, "no run was ended before it was done"
    # Between two system calls nobody can tidy up after SIGKILL; the next run does, once the file is old.
    for name in set(contents(folder)) - names:
        assert contents(folder)[name] in ("", new)
        os.utime(folder / name, (0, 0))
    again = perflint(folder, "fix", "--apply", "--no-cache", "--select", "TPL305", ".")
    assert again.returncode in (0, 1)
    assert set(contents(folder)) == names
    assert [text for name, text in contents(folder).items() if name.startswith("train_")] == [new] * FILES
