"""Processes of trials: whatever happens in one is one line in the other, and none is left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perflint.cli.app import run
from perflint.verify.benchmarks import describe, measure
from perflint.verify.launch import Launcher
from perflint.verify.measuring import Plan
from perflint.verify.processes import TrialError
from perflint.verify.results import Result, Verdict

MEASURE = '''"""Something."""

import ctypes, os, sys, time

SIZES = {"small": 1}
EQUAL = True


def setup(size, device):
    return {}


def before(state):
    return 1


def after(state):
    state["calls"] = state.get("calls", 0) + 1
    WHAT
    return 1
'''


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    with Launcher(tmp_path_factory.mktemp("launcher")) as started:
        yield started


def _measured(launcher: Launcher, tmp_path: Path, what: str, *, swapped: bool = False, timeout: float = 60) -> Result:
    file = tmp_path / "measure.py"
    file.write_text(MEASURE.replace("WHAT", what))
    benchmark = describe(launcher, "TPL000", file, "cpu", 120)
    sides = ("after", "before") if swapped else ("before", "after")
    plan = Plan(budget=2, timeout=timeout)
    (result,) = measure(launcher, benchmark, plan, tmp_path, sides=sides)
    return result


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("raise ValueError('no such thing')", "crashed: ValueError: no such thing"),
        ("raise MemoryError", "ran out of memory"),
        ("raise RuntimeError('CUDA out of memory. Tried to allocate')", "ran out of memory"),
        ("sys.exit(3)", "ended with sys.exit(3)"),
        ("print('last words', flush=True); os._exit(3)", "crashed: exit code 3: last words"),
        ("ctypes.string_at(0)", "crashed: ended by SIGSEGV"),
        ("os.kill(os.getpid(), 9)", "crashed: ended by SIGKILL, as happens when memory runs out"),
        # Not in the first call, but while it is being measured.
        ("state['calls'] > 20 and os._exit(3)", "crashed: exit code 3"),
    ],
)
def test_a_workload_that_ends_itself_is_one_line(what: str, said: str, launcher: Launcher, tmp_path: Path) -> None:
    result = _measured(launcher, tmp_path, what, swapped=True)
    assert (result.verdict, result.failed, result.ratio) == (Verdict.NOT_MEASURABLE, True, None)
    assert result.reason == said
    # The others go on.
    assert launcher.ask({"kind": "machine", "device": "cpu"}, 120)["kind"] == "cpu"


def test_a_workload_that_hangs_is_ended(launcher: Launcher, tmp_path: Path) -> None:
    result = _measured(launcher, tmp_path, "time.sleep(600)", swapped=True, timeout=1)
    assert result.reason == "hung: ended after 1 s (--timeout)"


def test_only_the_side_with_the_fix_crashes(launcher: Launcher, tmp_path: Path) -> None:
    result = _measured(launcher, tmp_path, "raise ValueError('no such thing')")
    assert result.verdict is Verdict.DIFFERENT_RESULT
    assert result.reason == "after the fix it crashed: ValueError: no such thing"


def test_what_a_workload_prints_is_no_answer(launcher: Launcher, tmp_path: Path) -> None:
    result = _measured(launcher, tmp_path, """print('{"seconds": 0}', flush=True); os.write(1, b'{"error": 1}\\\\n')""")
    assert result.verdict is not Verdict.NOT_MEASURABLE or "trials" in result.reason


def test_a_platform_that_cannot_fork_starts_interpreters(tmp_path: Path) -> None:
    with Launcher(tmp_path, forks=False) as launcher:
        file = tmp_path / "measure.py"
        file.write_text(MEASURE.replace("WHAT", "print('noise')"))
        request = {
            "kind": "benchmark",
            "file": str(file),
            "device": "cpu",
            "size": "small",
            "side": "after",
            "seed": 0,
            "block": 0.01,
            "threads": 1,
            "reference": None,
            "keeps": False,
            "compiled": str(tmp_path),
        }
        with launcher.open(request, 120) as live:
            assert (live.reply(60)["peak"] or 0) >= 0
            assert live.ask({"block": True}, 60)["seconds"] > 0
        broken = {**request, "size": "missing"}
        with pytest.raises(TrialError, match="KeyError"):
            launcher.open(broken, 120)


@pytest.mark.usefixtures("heeded_signals")
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_perflint(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    command = [sys.executable, "-m", "perflint", "verify", "--self-test", "50", "--device", "cpu"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, start_new_session=True
    )
    try:
        # The server, and at least one trial beside it.
        while len(_sessions_of(process.pid)) < 3:
            assert process.poll() is None
            time.sleep(0.05)
        started = _sessions_of(process.pid)
        process.send_signal(number)
        process.wait(60)
    finally:
        process.kill()
    deadline = time.monotonic() + 60
    while any(_is_alive(one) for one in started) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [one for one in started if _is_alive(one)] == []


def _sessions_of(root: int) -> set[int]:
    """`root` and all that descends from it."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = {root}
    while True:
        more = {one for one, parent in parents.items() if parent in found} - found
        if not more:
            return found
        found |= more


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _figures(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("before_s", "after_s", "ratio", "ratio_low", "ratio_high", "equal")}


def test_the_object_that_is_printed_and_the_plot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    plot = tmp_path / "ratios.svg"
    code = run(
        [
            *("verify", "--rule", "TPL501,TPL101,TPL407", "--size", "1,000 texts, one pattern", "--budget", "20s"),
            *("--output-format", "json", "--plot", str(plot), "--device", "cpu", "--no-store"),
        ]
    )
    table = json.loads(capsys.readouterr().out)
    assert {"device", "torch", "results"} <= table.keys()
    rows = {row["code"]: row for row in table["results"]}
    wanted = {
        *("code", "workload", "size", "verdict", "before_s", "after_s", "ratio", "ratio_low", "ratio_high"),
        *("peak_before", "peak_after", "equal"),
    }
    assert all(wanted <= row.keys() for row in rows.values())
    assert rows["TPL101"]["verdict"] == rows["TPL407"]["verdict"] == "not measurable here"
    assert set(_figures(rows["TPL101"]).values()) == {None}
    assert rows["TPL101"]["reason"] == "needs CUDA"
    measured = rows["TPL501"]
    if measured["ratio"] is not None:
        assert measured["ratio_low"] <= measured["ratio"] <= measured["ratio_high"]
        assert measured["verdict"] in {"faster", "no difference", "slower"}
        assert measured["equal"] is True
    assert code in {0, 2}
    assert plot.read_text().count("<circle") == (measured["ratio"] is not None)
