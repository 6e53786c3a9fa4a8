"""`perflint verify` and `fix --verify` as people use them. Real runs are held to structure and results only."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from perflint.cli.app import run
from perflint.finding import Finding
from perflint.verify.device import DeviceError, resolve
from perflint.verify.fixtrials import FixTrials
from perflint.verify.results import Result, Verdict

PROJECT = Path(__file__).parents[2] / "fixtures" / "verify_project"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("__pycache__", ".perflint_cache"))
    (folder / ".git").mkdir()
    monkeypatch.chdir(folder)
    return folder


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


_PLANTED = {
    "TPL301": Result("TPL301", "w", "", Verdict.FASTER, 2.0, 1.0, 2.0, 1.9, 2.1, equal=True),
    "TPL116": Result("TPL116", "w", "", Verdict.NO_DIFFERENCE, 1.0, 1.0, 1.0, 0.9, 1.1, equal=True),
    "TPL303": Result("TPL303", "w", "", Verdict.DIFFERENT_RESULT, equal=False, reason="result is 0 instead of 1"),
}


def _planted(_self: FixTrials, _workload: Any, findings: Sequence[Finding]) -> Result:
    return _PLANTED[findings[0].code]


def test_exactly_the_fix_that_pays_is_made(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(FixTrials, "measure", _planted)
    _, out, err = _run(capsys, "fix", ".", "--apply", "--verify", "--unsafe")
    assert out == "fixed training/teacher.py: TPL301\n"
    assert "copy.deepcopy" not in (project / "training/teacher.py").read_text()
    for name in ("training/cast.py", "training/loop.py", "bench.py"):
        assert (project / name).read_text() == (PROJECT / name).read_text()
    assert "TPL116 rejected (Cast on the device): no difference" in err
    assert "TPL303 rejected (Delete the collection): different result: result is 0 instead of 1" in err


def test_more_can_be_asked_for(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(FixTrials, "measure", _planted)
    _, out, err = _run(capsys, "fix", ".", "--apply", "--verify", "--unsafe", "--min-speedup", "3")
    assert out == ""
    assert "less than the required 3" in err


def test_a_fix_that_changes_the_result_is_called_that_and_nothing_is_touched(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = _run(
        capsys, "verify", "training/loop.py", "--unsafe", "--budget", "1s", "--output-format", "json", "--no-store"
    )
    assert code == 1
    (row,) = json.loads(out)["results"]
    assert (row["code"], row["verdict"], row["equal"]) == ("TPL303", "different result", False)
    assert {row[name] for name in ("before_s", "after_s", "ratio", "peak_before")} == {None}
    assert (project / "training/loop.py").read_text() == (PROJECT / "training/loop.py").read_text()


@pytest.mark.parametrize(
    ("command", "options", "reason"),
    [
        ("-c 'raise SystemExit(3)'", (), "failed with exit code 3"),
        ("-c 'import time; time.sleep(60)'", ("--timeout", "1s"), "hung: ended after 1 s (--timeout)"),
        ("-c 'print(1)'", ("--metric", "steps: (.*)"), "prints nothing that matches --metric 'steps: (.*)'"),
        ("-c 'print(\"steps: many\")'", ("--metric", "steps: (.*)"), "prints 'many' for --metric, which is no number"),
    ],
)
def test_a_command_at_fault_is_told_before_any_fix_is_tried(
    project: Path, command: str, options: Sequence[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = _run(
        capsys,
        *(
            "verify",
            "training/teacher.py",
            "--unsafe",
            "--command",
            f"{sys.executable} {command}",
            "--output-format",
            "json",
        ),
        *("--device", "cpu", *options),
    )
    assert (code, out) == (2, "")
    assert err.rstrip().endswith(f"fails without any fix, so none was measured: {reason}")


_BENCHES = {
    "crash": (
        "def step():\n    return lenght\n",
        "bench.py:step",
        "NameError: name 'lenght' is not defined",
    ),
    "second call": (
        "calls = []\ndef step():\n    calls.append(1)\n    return 1 / (2 - len(calls))\n",
        "bench.py:step",
        "ZeroDivisionError",
    ),
    "name": ("def step():\n    return 1\n", "bench.py:stpe", "bench.py has no stpe; did you mean 'step'?"),
    "module": ("def step():\n    return 1\n", "bnech:step", "there is no module bnech; did you mean 'bench'?"),
    "import": ("import nowhere_at_all\n", "bench:step", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
    "arguments": ("def step(batch):\n    return 1\n", "bench.py:step", "missing a required argument: 'batch'"),
    "exit": ("import sys\ndef step():\n    sys.exit(3)\n", "bench.py:step", "ended with sys.exit(3)"),
    "generator": ("def step():\n    yield 1\n", "bench.py:step", "calling it runs nothing"),
    "coroutine": ("async def step():\n    return 1\n", "bench.py:step", "asyncio.run"),
    "no function": ("step = 1\n", "bench.py:step", "bench.py:step is not callable"),
}


@pytest.mark.parametrize("which", _BENCHES)
def test_a_bench_at_fault_is_told_once_before_any_fix_is_tried(
    which: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, target, said = _BENCHES[which]
    (project / "bench.py").write_text(text)
    code, out, err = _run(capsys, "verify", ".", "--unsafe", "--bench", target, "--device", "cpu")
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("fails without any fix, so none was measured") == 1
    if which == "crash":
        assert err.count("Traceback (most recent call last)") == 1
        assert f'File "{project / "bench.py"}", line 2, in step' in err


def test_a_fix_that_the_workload_does_not_reach_is_not_reached(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "bench.py").write_text("from training import cast, loop, teacher\n\ndef step():\n    return 1\n")
    arguments = ("verify", "training/teacher.py", "--unsafe", "--device", "cpu", "--no-store")
    code, out, _ = _run(capsys, *arguments, "--output-format", "json")
    (row,) = json.loads(out)["results"]
    assert (code, row["verdict"], row["ratio"]) == (1, "not reached", None)
    assert row["reason"] == "the workload never runs training/teacher.py:9"
    code, out, _ = _run(capsys, *arguments)
    assert code == 1
    assert "not reached: the workload never runs training/teacher.py:9" in out
    _, out, err = _run(capsys, "fix", "training/teacher.py", "--unsafe", "--apply", "--verify", "--device", "cpu")
    assert out == ""
    assert "TPL301 rejected" in err
    assert ": not reached: the workload never runs training/teacher.py:9" in err


def _row_of(project: Path, bench: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    (project / "bench.py").write_text(bench)
    _, out, err = _run(
        capsys,
        *("verify", "training/teacher.py", "--unsafe", "--device", "cpu", "--budget", "1s", "--no-store"),
        *("--output-format", "json"),
    )
    rows = json.loads(out)["results"]
    assert len(rows) == 1, err
    return dict(rows[0])


_FOLLOW = """
import copy, torch
from torch import nn
from training.teacher import follow

class Module(nn.Linear):
    def load_state_dict(self, state):
        self.shares = state["weight"].data_ptr() == student.weight.data_ptr()
        return super().load_state_dict(state)

student, teacher = nn.Linear(2, 2), Module(2, 2)
calls = []

def step():
    follow(student, teacher)
    calls.append(1)
    return RESULT
"""


@pytest.mark.parametrize("result", ["teacher.shares", "len(calls) > 2 and teacher.shares"])
def test_the_results_of_several_calls_are_compared(
    result: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = _row_of(project, _FOLLOW.replace("RESULT", result), capsys)
    assert (row["verdict"], row["equal"]) == ("different result", False)
    assert row["reason"].startswith("in call 3 result is" if "len" in result else "result is")


@pytest.mark.parametrize(
    ("result", "unread"),
    [
        ("None", "result (the workload returns nothing)"),
        ("{'loss': 1.0, 'it': iter([1])}", "result['it'] (list_iterator)"),
        ("{object()}", "result (a set of object)"),
    ],
)
def test_what_cannot_be_read_is_not_compared_and_named(
    result: str, unread: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = _row_of(project, _FOLLOW.replace("RESULT", result), capsys)
    assert (row["equal"], row["not_compared"]) == (None, [unread])
    assert row["verdict"] != "different result"


def test_a_command_is_measured_by_the_figure_that_it_prints(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = project / "figure.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nfrom types import SimpleNamespace\n"
        # Importing torch takes seconds, which are not what this is about.
        "sys.modules['torch'] = SimpleNamespace(nn=SimpleNamespace(Module=object))\n"
        "from training.teacher import follow\n"
        "follow(SimpleNamespace(state_dict=dict), SimpleNamespace(load_state_dict=len))\n"
        "print('steps/s:', 10 if 'deepcopy' in Path('training/teacher.py').read_text() else 20)\n"
    )
    _, out, _ = _run(
        capsys,
        *(
            "verify",
            "training/teacher.py",
            "--unsafe",
            "--command",
            f"{sys.executable} figure.py",
            "--output-format",
            "json",
        ),
        *("--metric", r"steps/s: ([\d.]+)", "--higher-is-better", "--device", "cpu"),
    )
    (row,) = json.loads(out)["results"]
    assert row["verdict"] == "faster"
    assert row["ratio"] == pytest.approx(2.0)


def test_what_needs_an_accelerator_says_so_and_has_no_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(
        capsys, "verify", "--rule", "TPL101", "--device", "cpu", "--output-format", "json", "--no-store"
    )
    assert code == 0
    (row,) = json.loads(out)["results"]
    assert (row["verdict"], row["reason"], row["ratio"]) == ("not measurable here", "needs CUDA", None)


def test_a_size_that_no_benchmark_has_is_a_mistake(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _run(capsys, "verify", "--rule", "TPL301", "--size", "3 x 3", "--device", "cpu", "--no-store")

    assert (code, out) == (2, "")
    assert "'100 x 1k'" in err


def test_a_rule_is_measured_kept_shown_and_not_cleaned_away(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(capsys, "check", ".")
    code, out, _ = _run(
        capsys, *("verify", "--rule", "TPL301", "--size", "100 x 1k", "--budget", "20s", "--output-format", "json")
    )
    assert code in {0, 2}  # 2: a machine too busy for a verdict in this time
    table = json.loads(out)
    assert {"device", "torch", "results"} <= table.keys()
    (row,) = table["results"]
    assert row["equal"] in {True, None}
    _, page, _ = _run(capsys, "explain", "TPL301")
    assert "Measured" in page
    if row["ratio"] is not None:
        assert table["torch"] in page
        run(["clean"])
        kept = project / ".perflint_cache"
        assert list((kept / "evidence").glob("*.json"))
        assert (kept / ".gitignore").exists()


def test_without_torch_one_line_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "torch" else object())
    code, out, err = _run(capsys, "verify", "--rule", "TPL301")
    assert (code, out) == (2, "")
    assert err == "perflint: verify needs torch, which is not installed: pip install 'torch-perflint[verify]'\n"


@pytest.mark.usefixtures("heeded_signals")
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interruption_leaves_no_process_behind(
    number: signal.Signals, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.parent / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(project.parent / "tmp"))
    (project / "bench.py").write_text(
        "import pathlib, subprocess, sys, time\n"
        f"def step():\n    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', {str(project)!r}])\n"
        f"    pathlib.Path({str(project / 'started')!r}).touch()\n    time.sleep(600)\n"
    )
    command = [sys.executable, "-m", "perflint", "verify", "training/teacher.py", "--unsafe", "--device", "cpu"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while not (project / "started").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert "interrupted; results so far" in err
    deadline = time.monotonic() + 60
    while _with_argument(str(project)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _with_argument(str(project))


def _with_argument(text: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            found += [entry.name] if text in words else []
    return found


def test_a_device_whose_index_is_no_number_is_none() -> None:
    with pytest.raises(DeviceError, match="no device 'cuda:first'; known are auto, cuda"):
        resolve("cuda:first")
