"""Names in configurations: which files are read, and that a cached report does not outlive them."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.cli.app import run
from perflint.project.configured import Configured
from perflint.project.discovery import discover
from perflint.project.settings import Settings
from perflint.torch_model.packages import INSTALLED, is_installed

NETS = """from torch import nn

class Small(nn.Module):
    def forward(self, x):
        return x / x.max().item()

class Large(nn.Module):
    def forward(self, x):
        return x / x.min().item()
"""
MAIN = """import nets
from torch.utils.data import DataLoader

def train(config, data, optimizer):
    model = getattr(nets, config["net"])().cuda()
    for x in DataLoader(data):
        model(x.cuda(non_blocking=True)).mean().backward()
        optimizer.step()

if __name__ == "__main__":
    train(load("net.yaml"), None, None)
"""

OPTIONS = """import argparse
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--ranked", action="store_true")
args = parser.parse_args()

def train(model, data, optimizer):
    total = 0.0
    model.cuda()
    for x in DataLoader(data):
        scores = model(x.cuda(non_blocking=True))
        if args.ranked:
            total += scores.max().item()
        scores.mean().backward()
        optimizer.step()
    return total
"""


def test_the_words_of_configurations_are_read_and_those_of_data_are_not(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("model:\n  _target_: zoo.Net\n")
    (tmp_path / "b.json").write_text('{"type": "Dice"}')
    (tmp_path / "large.json").write_text('{"type": "Focal"}' + " " * 300_000)
    (tmp_path / "notes.csv").write_text("Huge")
    found = discover([tmp_path], Settings())
    assert [Path(path).name for path in found.configured] == ["a.yaml", "b.json", "large.json"]
    words = Configured(found.configured)()
    assert {"zoo.Net", "Dice"} <= words
    assert not {"Focal", "Huge"} & words


def test_the_options_that_a_makefile_holds_are_set_and_zeros_switch_off(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(
        "ARGS = --scale_kl 4.0 --scale_neg=0 --fast \\\n\t\t--warm 0.0\nrun:\n\tpython train.py $(ARGS) --big\n"
    )
    words = Configured(discover([tmp_path], Settings()).configured)()
    assert {"scale_kl=on", "scale_neg=off", "fast=on", "warm=off"} <= words
    assert not {"scale_neg=on", "big=on"} & words
    assert '>["train.py", {"big": true}]' in words


def test_a_kept_report_holds_while_the_configurations_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'a'\n")
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "main.py").write_text(MAIN)
    config = tmp_path / "net.yaml"

    def lines() -> set[int]:
        run(["check", "--select", "TPL201", "--output-format", "concise"])
        said = capsys.readouterr().out
        return {line for line in (5, 9) if f"nets.py:{line}:" in said}

    config.write_text("net: Small\n")
    assert lines() == {5}
    assert lines() == {5}
    config.write_text("net: Large # \n")
    assert lines() == {9}


def test_a_kept_report_holds_while_the_commands_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'a'\n")
    (tmp_path / "main.py").write_text(OPTIONS)
    (tmp_path / "other.py").write_text("import main\n")
    readme = tmp_path / "README.md"

    def impacts() -> list[str]:
        run(["check", "--select", "TPL201", "--impact", "low", "--output-format", "concise"])
        said = capsys.readouterr().out
        return [line.rpartition("(")[2] for line in said.splitlines() if line.startswith("main.py:")]

    readme.write_text("    python main.py\n")
    assert impacts() == ["low impact)"]
    assert impacts() == ["low impact)"]
    readme.write_text("    python main.py --ranked\n")
    assert impacts() == ["medium impact)"]
    readme.write_text("    python others.py --ranked\n")
    assert impacts() == ["low impact)"]


def test_how_a_project_is_installed_says_nothing_of_what_it_is_run_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    packaging, run_with = tmp_path / "pyproject.toml", tmp_path / "small.yaml"
    packaging.write_text('[project]\nname = "nets"\n')
    run_with.write_text("net: Small\n")
    assert Configured([str(packaging)])() == frozenset({INSTALLED})
    assert {"Small", "nets", INSTALLED} <= Configured([str(packaging), str(run_with)])()
    packaging.write_text("[tool.ruff]\nline-length = 120\n")
    assert Configured([str(packaging)])() == frozenset()


def test_a_project_is_installed_from_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaging = tmp_path / "faces" / "setup.cfg"
    packaging.parent.mkdir()
    packaging.write_text("[metadata]\nname = nets\n")
    words = {}
    for folder in (tmp_path, packaging.parent):
        monkeypatch.chdir(folder)
        words[folder] = Configured([str(packaging)])()
    assert words[tmp_path] == frozenset({f"{INSTALLED}faces"})
    assert words[packaging.parent] == frozenset({INSTALLED})
    assert is_installed("faces/nets/a.py", words[tmp_path])
    assert not is_installed("voices/nets/a.py", words[tmp_path])
    assert is_installed("nets/a.py", words[packaging.parent])
