"""Which option a finding names does not depend on the hash seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
_OPTIONS = """
import argparse

import torch
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--first", action="store_true")
parser.add_argument("--second", action="store_true")
args = parser.parse_args()


class Base(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def loss(self, x):
        value = self.layer(x).pow(2).mean()
        if torch.isnan(value):
            value = value * 0
        return value


class First(Base):
    pass


class Second(Base):
    pass


class Other(torch.nn.Module):
    def loss(self, x):
        return x.mean()


if __name__ == "__main__":
    if args.first:
        model = First().cuda()
    elif args.second:
        model = Second().cuda()
    else:
        model = Other().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in DataLoader(torch.randn(8, 4)):
        loss = model.loss(x.cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""


@pytest.mark.parametrize("seed", ["0", "4"])
def test_of_several_options_that_lead_to_a_place_the_first_is_told(tmp_path: Path, seed: str) -> None:
    (tmp_path / "train.py").write_text(_OPTIONS)
    (tmp_path / "perflint.toml").write_text("")
    words = "check --no-cache --impact low --exit-zero --output-format json .".split()
    done = subprocess.run(
        [sys.executable, "-m", "perflint", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
        capture_output=True,
        timeout=200,
        check=True,
    )
    assert b"Only with `first=True`" in done.stdout
