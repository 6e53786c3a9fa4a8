"""Fixes tried on a simulated device: what is counted, what is said of it, and what is kept."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from perflint.cli.app import run
from perflint.verify.choice import why_not
from perflint.verify.command import Command, CommandSide
from perflint.verify.counting import Counts, counts_of, described, verdict
from perflint.verify.measuring import Plan
from perflint.verify.overlay import Overlay
from perflint.verify.results import Machine, Result, Verdict, result_from_json
from perflint.verify.tables import table

BASE = Counts(12, 30, 100, 8)


@pytest.mark.parametrize(
    ("after", "wanted", "said"),
    [
        (Counts(1, 30, 100, 8), Verdict.FEWER, "fewer waits (12 -> 1)"),
        (Counts(1, 31, 100, 8), Verdict.FEWER, "fewer waits (12 -> 1), more launches (30 -> 31)"),
        (Counts(13, 1, 0, 0), Verdict.MORE, "more waits (12 -> 13), fewer launches (30 -> 1)"),
        (Counts(12, 29, 100, 8), Verdict.FEWER, "fewer launches (30 -> 29)"),
        (Counts(12, 31, 100, 8), Verdict.MORE, "more launches (30 -> 31)"),
        (Counts(12, 29, 200, 8), Verdict.UNDECIDED, "fewer launches (30 -> 29), more bytes to device (100 -> 200)"),
        (BASE, Verdict.SAME_COUNTS, "no wait, launch or copied byte changes"),
    ],
)
def test_waits_decide_and_then_what_all_other_counts_agree_on(after: Counts, wanted: Verdict, said: str) -> None:
    assert verdict(BASE, after) is wanted
    assert described(BASE, after).startswith(said)


def test_the_first_step_warms_up() -> None:
    assert counts_of([Counts(9, 9, 9, 9), Counts(1, 2, 3, 4), Counts(3, 2, 3, 4)]) == Counts(2, 2, 3, 4)
    assert counts_of([BASE]) == BASE
    assert counts_of([]) is None


def _result(kind: Verdict, reason: str, *, equal: bool | None = True) -> Result:
    counts = {"waits": 12.0, "launches": 30.0, "bytes_to_device": 0.0, "bytes_to_host": 0.0}
    return Result("TPL201", "w", "a.py:1", kind, equal=equal, reason=reason, counts_before=counts, counts_after=counts)


def test_what_is_said_and_what_is_kept() -> None:
    fewer = _result(Verdict.FEWER, "fewer waits (12 -> 1)")
    same = _result(Verdict.SAME_COUNTS, "no wait, launch or copied byte changes")
    unread = _result(Verdict.FEWER, "fewer waits (12 -> 1)", equal=None)
    text = table(Machine("simulated", "", "2.13"), [fewer, same, unread], color=False)
    assert "fewer waits (12 -> 1), same result" in text
    assert "no wait, launch or copied byte changes, same result" in text
    assert "fewer waits (12 -> 1), results not compared" in text
    assert why_not(fewer) == ""
    assert why_not(same) == "no wait, launch or copied byte changes"
    assert why_not(_result(Verdict.MORE, "more waits (1 -> 2)")) == "more waits (1 -> 2)"
    assert result_from_json(json.loads(json.dumps(fewer.to_json()))) == fewer


TRAIN = """\
import torch
from torch import nn


def train(model: nn.Module, loader, optimizer, device: torch.device):
    total = 0.0
    for images, labels in loader:
        images = images.to(device)
        labels = labels.to(device)
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""
BENCH = """\
import torch
from torch import nn
from train import train

torch.manual_seed(0)
device = torch.device("cuda")
model = nn.Linear(8, 3).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = [(torch.randn(2, 8, device=device), torch.zeros(2, dtype=torch.long, device=device)) for _ in range(6)]


def step():
    return train(model, loader, optimizer, device)


if __name__ == "__main__":
    print("total", step())
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    torch = pytest.importorskip("torch")
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
        pytest.skip("a simulated device needs torch 2.9")
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / "train.py").write_text(TRAIN)
    (folder / "bench.py").write_text(BENCH)
    monkeypatch.chdir(folder)
    return folder


_ARGUMENTS = ("--unsafe", "--select", "TPL201", "--bench", "bench.py:step", "--device", "simulated")


def test_a_fix_that_spares_waits_is_counted_and_made(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["verify", "train.py", *_ARGUMENTS, "--output-format", "json"])
    printed = json.loads(capsys.readouterr().out)
    (row,) = printed["results"]
    assert (code, row["verdict"], row["equal"]) == (0, "fewer", True)
    assert (row["counts_before"]["waits"], row["counts_after"]["waits"]) == (6, 1)
    assert (row["before_s"], row["ratio"]) == (None, None)
    assert printed["device"].startswith("simulated")
    run(["fix", "train.py", "--apply", "--verify", *_ARGUMENTS])
    assert capsys.readouterr().out == "fixed train.py: TPL201\n"
    assert ".item()" not in (project / "train.py").read_text().partition("return")[0]


def test_times_cannot_be_asked_of_a_simulated_device(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--rule", "TPL301", "--device", "simulated"]) == 2
    assert "counts instead of timing" in capsys.readouterr().err
    assert run(["fix", "train.py", "--verify", *_ARGUMENTS, "--min-speedup", "1.1"]) == 2
    assert "--min-speedup needs a device that can be timed" in capsys.readouterr().err


def test_a_command_is_counted_step_by_step(project: Path, tmp_path: Path) -> None:
    overlay = Overlay(project, tmp_path / "copy")
    overlay.copy()
    command = Command((sys.executable, "bench.py"), result="total (.*)", is_simulated=True)
    side = CommandSide(command, overlay, Path(), tmp_path)
    facts = side.start(Plan(timeout=300), tmp_path / "kept", keeps=True).facts
    assert facts.counts is not None
    assert facts.counts.waits == 1
    assert facts.equal is True
    assert facts.seen is not None
    assert 14 in facts.seen.lines["train.py"]
