"""Rules as libcst codemod commands, run by libcst's own tool."""

import importlib
import subprocess
import sys
from pathlib import Path

import libcst
import pytest
from libcst.codemod import CodemodContext

from perflint.codemods import fixable
from perflint.rule_api.page import fix_of
from perflint.rule_api.registry import load_rules

TRAIN = """\
import torch
from torch.utils.data import DataLoader

from steps import step


def main(model, data, optimizer):
    loader = DataLoader(data, batch_size=32, pin_memory=True, num_workers=2)
    model.to("cuda")
    for images, labels in loader:
        step(model, images, labels, optimizer)
"""
STEPS = """\
import torch
import torch.nn.functional as F


def step(model, images, labels, optimizer):
    images = images.to("cuda")
    loss = F.cross_entropy(model(images), labels.cuda(non_blocking=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.cuda.empty_cache()   # free it
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "p"\nversion = "1"\n')
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "steps.py").write_text(STEPS)
    return tmp_path


def codemod(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "libcst.tool", "codemod", "-x", *arguments, "--no-format", "-j", "1", "."],
        cwd=project,
        env={"PYTHONPATH": str(Path(__file__).parent.parent.parent), "PATH": "/usr/bin:/bin", "HOME": str(project)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_libcsts_tool_makes_a_fix_that_only_the_whole_program_allows(project: Path) -> None:
    done = codemod(project, "perflint.codemods.blocking_transfer.Fix")
    assert done.returncode == 0, done.stderr
    assert (project / "steps.py").read_text() == STEPS.replace(
        'images.to("cuda")', 'images.to("cuda", non_blocking=True)'
    )
    assert (project / "train.py").read_text() == TRAIN


def test_unsafe_fixes_are_made_only_when_asked_for(project: Path) -> None:
    assert codemod(project, "perflint.codemods.empty_cache_in_hot_loop.Fix").returncode == 0
    assert (project / "steps.py").read_text() == STEPS
    assert codemod(project, "perflint.codemods.empty_cache_in_hot_loop.Fix", "--unsafe").returncode == 0
    assert "empty_cache" not in (project / "steps.py").read_text()


def test_what_is_no_python_is_skipped_with_a_reason(project: Path) -> None:
    (project / "broken.py").write_text("def f(:\n")
    done = codemod(project, "perflint.codemods.blocking_transfer.Fix")
    assert "broken.py" in done.stderr
    assert "non_blocking=True" in (project / "steps.py").read_text().split("loss")[0]


def test_every_fixable_rule_is_a_command_with_its_own_words() -> None:
    names = fixable()
    assert set(names.values()) == {rule for rule in load_rules() if fix_of(rule) != "-"}
    for name, rule in names.items():
        command = importlib.import_module(f"perflint.codemods.{name}").Fix
        assert command.DESCRIPTION.startswith(f"{rule.code} {rule.name}: ")
        assert (command.__module__, command.__qualname__) == (f"perflint.codemods.{name}", "Fix")


def test_a_rule_without_a_fix_is_no_command() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("perflint.codemods.data_parallel")


def test_the_tree_in_memory_counts_and_not_the_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    command = importlib.import_module("perflint.codemods.blocking_transfer").Fix
    renamed = STEPS.replace("images.to", "images.contiguous().to")
    context = CodemodContext(filename=str(project / "steps.py"))
    assert command(context).transform_module(libcst.parse_module(renamed)).code.count("non_blocking=True") == 2
