"""Files that a formatter has left alone stay as it leaves them: long calls break, constants stand below imports."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perflint.cli import app

LOOP = """import torch
from torch.utils.data import DataLoader


def train(the_model, loader: DataLoader, optimizer, weights):
    for images, labels in loader:
        {call}
        the_model(images, labels).sum().backward()
        optimizer.step()
"""
CALLS = {
    "it fits as it is": "images = images.cuda()",
    "one line for all": "images_on_the_device_of_the_model = images.cuda(torch.device('cuda'))",
    "one line for each": "images_on_the_device_of_the_model_of_this_process = images.to("
    "torch.device('cuda', weights.place), torch.float32)",
}


def fixed(text: str, settings: str, *options: str) -> str:
    Path("pyproject.toml").write_text(settings)
    Path("train.py").write_text(text)
    app.run(["fix", "--unsafe", "--apply", "--no-cache", *options, "train.py"])
    return Path("train.py").read_text()


def formatted(text: str) -> str:
    ruff = shutil.which("ruff", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if ruff is None:
        pytest.skip("needs ruff")
    done = subprocess.run(
        [ruff, "format", "--stdin-filename", "train.py", "-"], input=text, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("settings", ["", "[tool.ruff]\nline-length = 100\n", "[tool.black]\nline-length = 96\n"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_formatter_has_nothing_to_do_afterwards(call: str, settings: str) -> None:
    Path("pyproject.toml").write_text(settings.replace("black", "ruff"))
    before = formatted(LOOP.format(call=call))
    after = fixed(before, settings.replace("black", "ruff"), "--select", "TPL101")
    assert "non_blocking=True" in after
    assert formatted(after) == after


def test_the_width_of_black_is_read() -> None:
    text = LOOP.format(call=CALLS["one line for all"].replace("'", '"'))
    assert "\n            torch" not in fixed(text, "[tool.black]\nline-length = 140\n", "--select", "TPL101")
    assert "\n            torch" in fixed(text, "[tool.black]\nline-length = 88\n", "--select", "TPL101")


def test_files_with_long_lines_keep_their_style() -> None:
    text = LOOP.format(call=CALLS["one line for all"]) + f"\n\nTEXT = '{'x' * 100}'\n"
    assert "\n            torch" not in fixed(text, "", "--select", "TPL101")


LATE = """import sys

sys.path.insert(0, "lib")

import re

import torch
from torch.utils.data import Dataset


class Texts(Dataset):
    def __getitem__(self, index):
        words = re.compile("[a-z]+")
        return words.findall(self.lines[index])
"""


def test_a_constant_stands_below_all_imports() -> None:
    text = fixed(LATE, "", "--select", "TPL501")
    assert text.index("_PATTERN = re") > text.index("from torch.utils.data import Dataset")
    assert text.index("_PATTERN = re") < text.index("class Texts")
