"""What `check` says of a program as a whole: what is reached, and which calls would make more of it hot."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from perflint.analysis.frequency.explain import explain_heat
from perflint.analysis.frequency.reach import reach
from perflint.analysis.program import Program
from perflint.cli.app import run
from perflint.ir.survey import survey

HOT = """import torch
from torch.utils.data import DataLoader

class Net(torch.nn.Module):
    def forward(self, x):
        return helper(x)

def helper(x):
    return inner(x)

def inner(x):
    return x

def never(x):
    return x

class Plug:
    def digest_all(self, x):
        return deep(x)

class Other:
    def digest_all(self, x):
        return x

def deep(x):
    return x

def once():
    deep(1)

def train(data, model: Net, plugs):
    once()
    for batch in DataLoader(data):
        model(batch).backward()
        plugs["a"].digest_all(batch)
"""
COLD = "import torch\n\ndef made(path):\n    return torch.load(path)\n"


def linked(text: str) -> Program:
    return Program({"a.py": survey(ast.parse(text), text.split("\n"))})


def test_functions_are_counted_by_how_often_they_run() -> None:
    found = reach(linked(HOT))
    assert (found.hot, found.rare, found.cold, found.unreached) == (4, 0, 2, 3)
    assert found.unresolved == (("digest_all", 1, 1),)
    assert list(found.lines())[1].endswith("`digest_all` (1 hot, 1 in all)")


def test_a_cold_line_names_the_call_that_would_make_it_hot() -> None:
    said = "\n".join(explain_heat(linked(HOT), "a.py", 26))
    assert "It would be hot if a.py:35 in `train` ran `Plug.digest_all`, which comes to call it" in said


Check = Callable[..., str]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    def checked(text: str, *options: str) -> str:
        (tmp_path / "pyproject.toml").write_text("[project]\nname = 'a'\n")
        (tmp_path / "a.py").write_text(text)
        monkeypatch.chdir(tmp_path)
        run(["check", "--no-cache", *options])
        return " ".join(capsys.readouterr().out.split())

    return checked


def test_a_program_without_a_training_loop_is_told(check: Check) -> None:
    assert "No training loop was found. Looked for: a loop over a DataLoader" in check(COLD)


@pytest.mark.parametrize("text", [HOT, COLD.replace("torch", "numpy")])
def test_nothing_is_told_of_hot_programs_and_of_those_without_torch(text: str, check: Check) -> None:
    assert "No training loop" not in check(text)


def test_statistics_tell_how_much_is_reached(check: Check) -> None:
    said = check(HOT, "--statistics")
    assert "9 functions: 4 hot, 0 every epoch or every few steps, 2 cold, 3 never called" in said
    assert "`digest_all` (1 hot, 1 in all)" in said
