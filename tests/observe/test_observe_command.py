"""`perflint observe` as a user runs it: programs, modules, callables, ends of all kinds."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", minversion="2.9")

_PROGRAM = """
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)

    def forward(self, x):
        x = self.layer(x)
        if x.max() > 1000:
            x = x * 2
        return x


def main():
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = TensorDataset(torch.randn(64, 4), torch.zeros(64, dtype=torch.long))
    for step, (x, y) in enumerate(DataLoader(data, batch_size=4, pin_memory=True, num_workers=1)):
        noise = torch.zeros(4, 4)
        x = x.to("cuda", non_blocking=True) + noise.cuda()
        loss = torch.nn.functional.cross_entropy(model(x), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 2 == 0:
            print("loss", loss.item())
    print("arguments", sys.argv[1:])


if __name__ == "__main__":
    main()
"""


def _observe(folder: Path, *arguments: str, timeout: float = 300.0) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    return subprocess.run(
        [sys.executable, "-m", "perflint", "observe", "--device", "simulated", *arguments],
        check=False,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def _json(folder: Path, *arguments: str) -> tuple[dict[str, Any], subprocess.CompletedProcess[str]]:
    run = _observe(folder, "--output-format", "json", *arguments)
    assert run.stdout, run.stderr
    return json.loads(run.stdout), run


def _line_of(text: str) -> int:
    return 1 + _PROGRAM[: _PROGRAM.index(text)].count("\n")


def test_program_is_observed_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_PROGRAM)
    found, run = _json(tmp_path, "--steps", "4", "--warmup", "1", "--", "python", "train.py", "--x", "1")
    assert run.returncode == 0
    assert found["device"] == "simulated"
    assert [total["index"] for total in found["totals"]] == [1, 2, 3, 4]
    assert "loss" in run.stderr
    waits = {(one["line"], one["kind"]): one for one in found["lines"] if one["waits"]}
    forward = waits[_line_of("if x.max() > 1000"), "read"]
    assert (forward["per_step"], forward["phase"], forward["column"], forward["end_column"]) == (1, "forward", 12, 26)
    assert [frame["function"] for frame in forward["stack"] if not frame.get("library")] == [
        "<module>",
        "main",
        "Net.forward",
    ]
    assert waits[_line_of("loss.item()"), "read"]["counts"] == {"1": 1, "3": 1}  # after the optimizer stepped
    assert waits[_line_of("noise.cuda()"), "to-device"]["bytes"] == 64
    assert waits[_line_of("y.cuda()"), "to-device"]["per_step"] == 1
    assert len(waits) == 4
    others = {(one["line"], one["kind"]): one for one in found["lines"] if not one["waits"]}
    assert others[_line_of("torch.zeros(4, 4)"), "host-allocation"]["per_step"] == 1
    assert others[_line_of('x.to("cuda"'), "to-device"]["per_step"] == 1
    backward = [one for one in found["lines"] if one["in_backward"] and one["line"] == _line_of("self.layer(x)")]
    assert backward
    assert backward[0]["phase"] == "backward"
    ran = {line for first, last in found["ran"]["train.py"] for line in range(first, last + 1)}
    assert _line_of("if x.max()") in ran
    assert _line_of("x = x * 2") not in ran


def test_budget_decides_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_PROGRAM)
    run = _observe(tmp_path, "--max-waits", "1", "--", "python", "train.py")
    assert run.returncode == 1
    assert "waits a step, more than --max-waits 1" in run.stderr
    assert _observe(tmp_path, "--max-waits", "9", "--max-launches", "900", "--", "python", "train.py").returncode == 0


def test_call_and_module(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text(
        "import torch\nx = torch.ones(3, device='cuda')\n\ndef step():\n    return x.sum().item()\n\n"
        "if __name__ == '__main__':\n    step()\n"
    )
    found, _ = _json(tmp_path, "--call", "bench:step", "--steps", "2")
    assert [total["waits"] for total in found["totals"]] == [1, 1]
    found, _ = _json(tmp_path, "--", "python", "-m", "bench")
    assert any("no step was seen" in error for error in found["errors"])
    assert found["totals"][0]["waits"] == 1


_BY_HAND = """
import torch

weight = torch.ones(4, 2, device="cuda", requires_grad=True)
for _ in range(9):
    loss = (torch.ones(3, 4).cuda() @ weight).sum()
    loss.backward()
    with torch.no_grad():
        weight -= 0.1 * weight.grad
        weight.grad = None
    print(loss.item())
"""


def test_parameters_changed_by_hand_make_steps_of_backward_passes(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_BY_HAND)
    found, _ = _json(tmp_path, "--", "python", "train.py")
    assert [total["waits"] for total in found["totals"]] == [2, 2, 2]
    assert {(one["line"], one["kind"]): one["per_step"] for one in found["lines"] if one["waits"]} == {
        (6, "to-device"): 1,
        (11, "read"): 1,
    }
    assert not found["errors"]


def test_program_without_steps_is_one_step_with_its_lines(tmp_path: Path) -> None:
    (tmp_path / "evaluate.py").write_text(
        "import torch\nx = torch.ones(3).long().cuda()\nfor _ in range(4):\n    x.sum().item()\n"
    )
    found, _ = _json(tmp_path, "--", "python", "evaluate.py")
    assert (found["steps"], found["warmup"], found["step"]["waits"]) == (1, 0, 5)
    assert {(one["line"], one["kind"]): one["per_step"] for one in found["lines"] if one["kind"] != "launch"} == {
        (2, "host-allocation"): 1,
        (2, "to-device"): 1,
        (4, "read"): 4,
    }
    assert found["trace"]["rows"]


_TWO_OPTIMIZERS = """
import torch

critic = torch.nn.Linear(2, 2).cuda()
actor = torch.nn.Linear(2, 2).cuda()
first = torch.optim.SGD(critic.parameters(), 0.1)
second = torch.optim.SGD(actor.parameters(), 0.1)
x = torch.ones(3, 2, device="cuda")
for _ in range(9):
    critic(x).sum().backward()
    first.step()
    actor(x).sum().backward()
    second.step()
    x.sum().item()
"""


def test_two_optimizers_make_one_step_and_the_report_says_whose(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_TWO_OPTIMIZERS)
    found, _ = _json(tmp_path, "--", "python", "train.py")
    assert [total["waits"] for total in found["totals"]] == [1, 1, 1]
    assert found["errors"] == ["2 optimizers step: a step ends with the one that steps at train.py:11"]


def test_failing_program_keeps_its_traceback_and_code(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\ntorch.ones(2).cuda()\nraise SystemExit(7)\n")
    run = _observe(tmp_path, "--", "python", "train.py")
    assert run.returncode == 7
    (tmp_path / "train.py").write_text("import torch\n\ndef f():\n    raise KeyError('lost')\n\nf()\n")
    run = _observe(tmp_path, "--try-without", "--", "python", "train.py")
    assert run.returncode == 1
    assert 'train.py", line 6, in <module>' in run.stderr
    assert "KeyError: 'lost'" in run.stderr
    assert "child.py" not in run.stderr
    assert "without observation the program ends with exit code 1" in run.stderr


def test_no_step_in_time_says_where_it_stood(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import time, torch\n\ndef stuck():\n    while True:\n        time.sleep(0.01)\n\nstuck()\n"
    )
    found, _ = _json(tmp_path, "--timeout", "4", "--", "python", "train.py")
    assert "no steady step within 4 s; it stood at train.py:" in found["ended"]
    assert "in stuck" in found["ended"]


_ENDLESS = """
import torch

weight = torch.nn.Parameter(torch.ones(3, device="cuda"))
optimizer = torch.optim.SGD([weight], 0.1)
step = 0
while True:
    optimizer.zero_grad()
    weight.sum().backward()
    optimizer.step()
    weight.sum().item()
    step += 1
    if step == 5:
        print("five steps", flush=True)
"""


@pytest.mark.usefixtures("heeded_signals")
@pytest.mark.skipif(sys.platform == "win32", reason="no interrupts to a group of processes")
def test_interrupt_ends_the_program_and_reports_what_was_seen(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_ENDLESS)
    words = ["--steps", "1000000", "--warmup", "1", "--output", "seen.json", "--", "python", "train.py"]
    with subprocess.Popen(
        [sys.executable, "-m", "perflint", "observe", "--device", "simulated", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "five steps\n"
        os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it
        try:
            said, complained = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == 130, complained
    assert "Traceback" not in complained
    assert "train.py:11" in said
    found = json.loads((tmp_path / "seen.json").read_text())
    assert found["ended"] == "interrupted"
    assert len(found["totals"]) >= 3
    assert {total["waits"] for total in found["totals"]} == {1}


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_steps_are_counted_on_a_terminal(tmp_path: Path) -> None:
    import pty

    (tmp_path / "bench.py").write_text("import time\n\ndef step():\n    time.sleep(0.5)\n")
    ours, theirs = pty.openpty()
    run = subprocess.Popen(
        [sys.executable, "-m", "perflint", "observe", "--device", "simulated", "--steps", "4", "--call", "bench:step"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # what the end of a terminal is on Linux
        while piece := os.read(ours, 4096):
            shown += piece
    os.close(ours)
    assert run.wait(120) == 0
    assert re.search(rb"\r[1-6]/6 steps", shown)
    assert b"\r\x1b[K" in shown


def test_check_can_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_PROGRAM)
    found, _ = _json(tmp_path, "--", "python", "train.py")
    assert any(line["finding"] for line in found["lines"])
    found, _ = _json(tmp_path, "--no-check", "--", "python", "train.py")
    assert not any(line["finding"] for line in found["lines"])


def test_kernel_without_host_implementation_names_line_and_stub(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\n"
        "from gpukernels.ops import fast_sum\n\n"
        "library = torch.library.Library('mine', 'DEF')\n"
        "library.define('scale(Tensor x) -> Tensor')\n"
        "x = torch.ones(3, device='cuda')\n"
        "print('sum', fast_sum[(1,)](x).item())\n"
        "torch.ops.mine.scale(x)\n"
    )
    (tmp_path / "reference.py").write_text("def fast_sum(x):\n    return x.sum()\n\ndef scale(x):\n    return x * 2\n")
    stub = ("--stub", "gpukernels.ops.fast_sum=reference.fast_sum")
    found, run = _json(tmp_path, *stub, "--", "python", "train.py")
    assert run.returncode == 1
    assert "sum 3.0" in run.stderr
    assert any("train.py:8" in error and "--stub mine::scale=package.reference" in error for error in found["errors"])
    found, run = _json(tmp_path, *stub, "--stub", "mine::scale=reference.scale", "--", "python", "train.py")
    assert run.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no program given"),
        (("--", "torchrun", "train.py"), "torchrun is not Python"),
        (("--as", "voodoo2", "--", "python", "train.py"), "voodoo2"),
        (("--stub", "x", "--", "python", "train.py"), "--stub x: write package.kernel=package.reference"),
        (("--call", "bench"), "write package.module:function"),
        (("--call", "no_such_module:f"), "no_such_module"),
    ],
)
def test_bad_input_is_one_clear_error(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    run = _observe(tmp_path, *arguments)
    assert run.returncode == 2
    assert said in run.stderr
    assert "Traceback" not in run.stderr
