"""The same findings whatever the number of processes, and nothing lost with one that dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.names.refs import Scope
from perflint.analysis.program import Program
from perflint.engine import Options, Run, check, parallel, worker
from perflint.engine.parallel import map_chunks
from perflint.finding import Report
from perflint.project.discovery import discover
from perflint.project.settings import load_settings
from perflint.rule_api.registry import load_rules

pytestmark = pytest.mark.skipif(not parallel.can_fork(), reason="workers are forked")


@pytest.fixture
def many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "perflint.toml").write_text("")
    for number in range(80):
        (tmp_path / f"train_{number:02}.py").write_text(
            "import gc\nfrom shared import clean_up\n\n\n"
            "def train(model, loader, optimizer):\n    for batch in loader:\n"
            "        model(batch).backward()\n        optimizer.step()\n"
            + ("        gc.collect()\n" if number % 3 else "        clean_up()\n")
        )
    (tmp_path / "shared.py").write_text("import gc\n\n\ndef clean_up():\n    gc.collect()\n")
    (tmp_path / "broken.py").write_text("def f(:\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(jobs: int) -> Report:
    settings = load_settings(Path.cwd())
    rules = [rule() for rule in load_rules() if rule.code == "TPL303"]
    return check(discover(["."], settings), Options(settings, rules, jobs=jobs, cache=False))


def test_findings_do_not_depend_on_the_number_of_processes(many_files: Path) -> None:
    alone = run(1)
    assert len(alone.findings) == 54
    assert len(alone.errors) == 1
    assert run(2) == alone
    assert run(5) == alone


def linked(jobs: int) -> Program:
    settings = load_settings(Path.cwd())
    return Run(discover(["."], settings), Options(settings, [], jobs=jobs, cache=False), {}).program()


@pytest.mark.parametrize("killed", [False, True])
def test_processes_that_share_the_link_find_the_same_calls(
    killed: bool,
    many_files: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone = linked(1)
    assert len(alone.graph.incoming[Scope("shared.py", "clean_up")]) == 27
    monkeypatch.setattr("perflint.engine._MANY_FILES", 10)
    original = CallGraph._connect_plain
    parent = os.getpid()
    here: list[range] = []

    def connect(self: CallGraph, numbers: range) -> list[tuple[int, int]]:
        if os.getpid() == parent:
            here.append(numbers)
        elif killed and not (many_files / "struck").exists():
            (many_files / "struck").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return original(self, numbers)

    monkeypatch.setattr(CallGraph, "_connect_plain", connect)
    shared = linked(3)
    assert shared.graph.outgoing == alone.graph.outgoing
    assert shared.graph.incoming == alone.graph.incoming
    assert shared.graph.unresolved == alone.graph.unresolved
    assert here == []


def lost(_number: int) -> list[int]:
    return [-1]


def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    def work(numbers: Sequence[int]) -> list[int]:
        if 70 in numbers and not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            os.kill(os.getpid(), 9)
        return [number * 2 for number in numbers]

    done = [number for _, results in map_chunks(work, list(range(200)), 2, lost) for number in results]
    assert done == [number * 2 for number in range(200)]


def test_an_item_that_no_process_survives_is_lost_alone() -> None:
    parent = os.getpid()

    def work(numbers: Sequence[int]) -> list[int]:
        assert os.getpid() != parent, "here it would end the run"
        if 70 in numbers or 131 in numbers:
            os.kill(os.getpid(), 9)
        return [number * 2 for number in numbers]

    done = [number for _, results in map_chunks(work, list(range(200)), 2, lost) for number in results]
    assert done == [number * 2 if number not in (70, 131) else -1 for number in range(200)]


def test_an_error_in_a_worker_is_raised_here() -> None:
    def work(numbers: Sequence[int]) -> list[int]:
        return [1 // (0 if 70 in numbers else 1)]

    with pytest.raises(ZeroDivisionError):
        list(map_chunks(work, list(range(200)), 2, lost))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_run_however_it_ends(tmp_path: Path, number: signal.Signals) -> None:
    script = (
        "import os, sys, time\nfrom perflint.engine.parallel import map_chunks\n"
        "def work(numbers):\n    print(os.getpid(), flush=True)\n    time.sleep(1 if numbers[0] else 0)\n"
        "list(map_chunks(work, list(range(200)), 2, print))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(parallel.__file__).parents[2])}
    run = subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    assert int(run.stdout.readline())
    run.send_signal(number)
    run.wait(timeout=60)
    # The pipe is at its end when the last worker that could write to it has ended.
    ended = threading.Thread(target=run.stdout.read, daemon=True)
    ended.start()
    ended.join(timeout=60)
    assert not ended.is_alive()
    run.stdout.close()


def test_no_memory_to_spare_ends_no_run(many_files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = run(1)
    monkeypatch.setattr(worker, "_HEAP_KEPT", 1 << 60)
    assert run(1).findings == before.findings


INTERRUPTED = """
import os
from concurrent.futures import process

from perflint.engine.parallel import map_chunks

class Interrupted(process._ExecutorManagerThread):
    def start(self):
        raise KeyboardInterrupt

process._ExecutorManagerThread = Interrupted
try:
    list(map_chunks(len, range(100), 2, lambda item: 0))
except KeyboardInterrupt:
    print("interrupted")
"""


def test_interrupted_while_the_workers_start_it_ends() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")
