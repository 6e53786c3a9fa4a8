"""A failing program against itself without observation, each budget by itself, and PyTorch that is too old."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

_ROOT = Path(__file__).resolve().parents[2]
_STEPS = """
import os
import torch

weight = torch.nn.Parameter(torch.ones(3, device="cuda" if torch.cuda.is_available() else "cpu"))
optimizer = torch.optim.SGD([weight], 0.1)
for _ in range(9):
    (weight * torch.ones(3).to(weight.device)).sum().backward()
    optimizer.step()
    weight.sum().item()
"""


def _observe(folder: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(program)
    words = [*arguments, "--no-check", "--", "python", "train.py"]
    return subprocess.run(
        [sys.executable, "-m", "perflint", "observe", "--device", "simulated", *words],
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_failure_that_only_observation_meets_is_told_so(tmp_path: Path) -> None:
    run = _observe(tmp_path, _STEPS + "assert weight.device.type == 'cpu'\n", "--steps", "50", "--try-without")
    assert run.returncode == 1
    assert "a step: 2 waits" in run.stdout, "what was observed until then"
    assert "without observation the program ends with exit code 0: only the observed run fails" in run.stderr


def test_another_failure_is_told_from_the_same(tmp_path: Path) -> None:
    same = _observe(tmp_path, "import torch\nraise KeyError('lost')\n", "--try-without")
    assert "ends with exit code 1 (KeyError): the same failure" in same.stderr
    other = "import torch\ntorch.ones(1).cuda()\nraise KeyError('lost')\n"
    if not torch.cuda.is_available():
        assert "(AssertionError): another failure than under observation, exit code 1 (KeyError)" in (
            _observe(tmp_path, other, "--try-without").stderr
        )


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_a_program_that_a_signal_ends_is_tried_without_too(tmp_path: Path) -> None:
    crash = "import os, signal, torch\nif torch.cuda.is_available():\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
    run = _observe(tmp_path, crash, "--try-without")
    assert run.returncode == 139
    assert "the program ended with signal SIGSEGV before anything was recorded" in run.stderr
    assert torch.cuda.is_available() or "exit code 0: only the observed run fails" in run.stderr


def test_each_budget_is_named_with_what_was_seen(tmp_path: Path) -> None:
    budgets = ("--max-waits", "2", "--max-launches", "2", "--max-bytes-to-host", "3", "--max-bytes-to-device", "11")
    run = _observe(tmp_path, _STEPS, *budgets)
    assert run.returncode == 1
    for said in ("more than --max-launches 2", "4 bytes to host a step, more than --max-bytes-to-host 3"):
        assert said in run.stderr
    assert "12 bytes to device a step, more than --max-bytes-to-device 11" in run.stderr
    assert "--max-waits" not in run.stderr, "two waits a step are within the budget"


def test_pytorch_that_is_too_old_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from perflint.errors import PerflintError
    from perflint.observe.device.install import require_torch

    require_torch()
    monkeypatch.setattr(torch, "__version__", "2.8.1+cu128")
    with pytest.raises(
        PerflintError, match=r"needs PyTorch 2\.9 or newer, and this is 2\.8\.1.*torch-perflint\[observe\]"
    ):
        require_torch()
