"""What stands under `self.training` of a module that a program makes for its inference alone runs never."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perflint.cli.app import run

NET = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def forward(self, x, labels=None):
        x = self.body(x)
        if self.training:
            x = self.sampled(x)
        return x

    def sampled(self, x):
        return x[torch.nonzero(x.sum(1) > 0).squeeze(1)]
"""
DETECT = """import torch
from net import Net
from torch.utils.data import DataLoader


class Detector:
    def __init__(self):
        self.net = Net().cuda()

    def __call__(self, image):
        {mode}
        with torch.no_grad():
            return self.net(image.cuda())


def main(images):
    detector = Detector()
    for image in DataLoader(images):
        print(detector(image).shape)


if __name__ == "__main__":
    main([])
"""
TRAIN = """import torch
from net import Net
from torch import nn
from torch.utils.data import DataLoader


def main(rows):
    net = {made}.cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in DataLoader(rows):
        optimizer.zero_grad()
        net(x.cuda()).sum().backward()
        optimizer.step()


if __name__ == "__main__":
    main([])
"""


@pytest.mark.parametrize(
    ("mode", "made", "found"),
    [
        ("self.net.eval()", "nn.Linear(8, 8)", False),
        ("self.net.train(False)", "nn.Linear(8, 8)", False),
        ("self.net.train()", "nn.Linear(8, 8)", True),
        ("pass", "nn.Linear(8, 8)", True),
        ("self.net.eval()", "Net()", True),
    ],
)
def test_a_module_that_is_only_evaluated_does_nothing_of_its_training(
    mode: str, made: str, found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("Run `python detect.py` or `python train.py`.\n")
    (tmp_path / "net.py").write_text(NET)
    (tmp_path / "detect.py").write_text(DETECT.format(mode=mode))
    (tmp_path / "train.py").write_text(TRAIN.format(made=made))
    args = ["check", ".", "--no-cache", "--exit-zero", "--impact", "low", "--output-format", "json", "--output", "out"]
    run(args)
    findings = json.loads((tmp_path / "out").read_text())["findings"]
    assert any(item["path"] == "net.py" and item["line"] == 17 for item in findings) is found
