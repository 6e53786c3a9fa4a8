"""Tests are read for what they define: they are not inspected, and nothing that they do counts for training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from perflint.engine import Options, check
from perflint.project.discovery import discover
from perflint.project.settings import load_settings
from perflint.rule_api.registry import load_rules

TRAIN = """\
import gc
import torch


def train(model: torch.nn.Module, loader, optimizer, device: str):
    for batch in loader:
        noise = torch.zeros(8, 8).to(device)
        model(batch.cuda() + noise).backward()
        optimizer.step()
        gc.collect()
"""
#: As it may stand where tests are set up.
CONFTEST = "import torch\n\ntorch.set_default_device('cuda')\n"
HELPER = "import gc\n\n\ndef tidy():\n    gc.collect()\n"
CALLS = """\
from helper import tidy


def {name}(loader, loss):
    for batch in loader:
        loss.backward()
        tidy()
"""
PARTS = """\
import gc


def loop(loader):
    yield from loader


class Tidy:
    def run(self):
        gc.collect()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.perflint]\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(project: Path, texts: Mapping[str, str], *, cache: bool = False) -> set[tuple[str, str]]:
    for name, text in texts.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text)
    settings = load_settings(project)
    report = check(discover(["."], settings), Options(settings, [rule() for rule in load_rules()], cache=cache))
    assert not report.errors
    return {(finding.path, finding.code) for finding in report.findings}


ALONE = {("train.py", "TPL107"), ("train.py", "TPL303")}


@pytest.mark.parametrize("name", ["test_train.py", "train_test.py", "conftest.py", "tests/helpers.py", "test/train.py"])
def test_what_stands_in_tests_is_not_inspected(project: Path, name: str) -> None:
    assert found(project, {name: f"{TRAIN}\n\ndef test_train(model):\n    train(model, [], None, 'cpu')\n"}) == set()


def test_words_in_tests_silence_nothing(project: Path) -> None:
    assert found(project, {"train.py": TRAIN}) >= ALONE
    assert found(project, {"conftest.py": CONFTEST}) >= ALONE
    assert ("train.py", "TPL107") not in found(project, {"setup_devices.py": CONFTEST})


def test_what_only_tests_call_in_a_loop_is_not_hot(project: Path) -> None:
    assert found(project, {"helper.py": HELPER, "test_helper.py": CALLS.format(name="test_tidy")}) == set()
    assert ("helper.py", "TPL303") in found(project, {"train.py": CALLS.format(name="train")})


def test_what_training_takes_from_tests_is_known(project: Path) -> None:
    train = TRAIN.replace("import gc\n", "import gc\nfrom tests.parts import Tidy, loop\n").replace(
        "in loader:", "in loader:\n        Tidy().run()"
    )
    assert found(project, {"tests/parts.py": PARTS, "train.py": train}) >= ALONE


def test_a_cache_knows_tests_from_what_is_none(project: Path) -> None:
    assert found(project, {"tests/train.py": TRAIN}, cache=True) == set()
    (project / "tests" / "train.py").rename(project / "train.py")
    assert found(project, {}, cache=True) >= ALONE
    (project / "train.py").rename(project / "tests" / "train.py")
    assert found(project, {}, cache=True) == set()
