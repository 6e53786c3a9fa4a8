"""High is what a step certainly pays: medium is the same waste with a doubt about step, value or frequency."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.engine import Options, check
from perflint.finding import Confidence, Finding, Impact
from perflint.project.discovery import discover
from perflint.project.settings import load_settings
from perflint.rule_api.registry import load_rules

BLOCK = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)
        self.outer = nn.Linear(8, 8)

    def forward(self, x):
        for _ in range(4):
            x = self.inner(x)
            kept = torch.rand(8, device="cuda") > 0.1
            if kept.any():
                x = x * kept
            x = self.outer(self.inner(self.outer(self.inner(self.outer(self.inner(self.outer(x)))))))
        return x
"""
TRAINING = """

def train(data):
    model = Block().cuda()
    loader = torch.utils.data.DataLoader(data, num_workers=2)
    optimizer = torch.optim.SGD(model.parameters())
    for x in loader:
        model(x.cuda(non_blocking=True)).mean().backward()
        optimizer.step()
"""
GROWING = """
import torch


def read(path):
    rows = torch.zeros(0, 8)
    for line in open(path):
        rows = torch.cat([rows, torch.tensor([float(item) for item in line.split()])[None]])
    return rows
"""


def found(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str, text: str) -> list[Finding]:
    (folder / "it.py").write_text(text)
    monkeypatch.chdir(folder)
    settings = load_settings(folder)
    rules = [rule() for rule in load_rules() if rule.code == code]
    return list(check(discover(["."], settings), Options(settings, rules, cache=False)).findings)


def test_a_wait_in_each_layer_of_a_model_that_trains_here_is_high(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = found(tmp_path, monkeypatch, "TPL202", BLOCK + TRAINING)
    assert (one.impact, one.confidence) == (Impact.HIGH, Confidence.HIGH)


def test_a_wait_that_only_users_of_a_library_pay_is_medium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = found(tmp_path, monkeypatch, "TPL202", BLOCK)
    assert one.impact is Impact.MEDIUM


def test_work_that_no_step_pays_is_medium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = found(tmp_path, monkeypatch, "TPL309", GROWING)
    assert one.impact is Impact.MEDIUM


def test_a_setting_costs_on_each_later_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import torch\n\ndetect = torch.autograd.set_detect_anomaly(True)\n\n\n" + BLOCK + TRAINING
    (one,) = found(tmp_path, monkeypatch, "TPL901", text)
    assert one.impact is Impact.HIGH
