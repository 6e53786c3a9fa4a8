"""Twice as much code is about twice as much work: counted in calls of functions, never by a clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from perflint import engine
from perflint.project.discovery import discover
from perflint.project.settings import load_settings
from perflint.rule_api.registry import load_rules

Result = TypeVar("Result")

_HEAD = """import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.zeros(8, 3), torch.zeros(8))
loader = DataLoader(data, num_workers=2, pin_memory=True)


def train(model, optimizer, kind):
"""
_LEARN = (
    "        loss = model(images.cuda(non_blocking=True)).sum()\n        loss.backward()\n        optimizer.step()\n"
)
_LOOP = "    for images, labels in loader:\n"


def _branches(count: int) -> str:
    arms = "".join(
        f"        {'el' if i else ''}if kind == {i}:\n            images = images.float()\n"
        f"            images = images.cuda()\n            labels = labels.cuda()\n            images = images * {i}\n"
        for i in range(count)
    )
    return _HEAD + _LOOP + arms + _LEARN


def _loops(count: int) -> str:
    return _HEAD + (_LOOP + "        images = images.cuda()\n" + _LEARN) * count


def _moves(count: int) -> str:
    return _HEAD + _LOOP + "".join(f"        x{i} = labels.cuda()\n" for i in range(count)) + _LEARN


def _reads(count: int) -> str:
    return _HEAD + _LOOP + _LEARN + "".join(f"        n{i} = loss.item()\n" for i in range(count))


def _evaluations(count: int) -> str:
    each = (
        "def evaluate{0}(model):\n    model.eval()\n    for images, labels in loader:\n        model(images.cuda())\n\n"
    )
    return _HEAD + _LOOP + _LEARN + "\n" + "".join(each.format(i) for i in range(count))


SHAPES = [_branches, _loops, _moves, _reads, _evaluations]


@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_code_is_twice_the_work(
    shape: Callable[[int], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted in calls, those of builtins included. What is imported and compiled at its first use was there before."""
    (tmp_path / "perflint.toml").write_text("time-limit = 0\n")
    monkeypatch.chdir(tmp_path)
    settings = load_settings(Path.cwd())
    options = engine.Options(settings, [rule() for rule in load_rules()], cache=False, jobs=1)
    calls, findings = [], []
    for count in (10, 60, 120):
        (tmp_path / "train.py").write_text(shape(count))
        made, report = _counted(lambda: engine.check(discover(["."], settings), options))
        calls.append(made)
        findings.append(len(report.findings))
        assert report.errors == ()
    assert findings[2] >= findings[1] >= 1
    assert calls[2] <= 2.25 * calls[1]


def _counted(work: Callable[[], Result]) -> tuple[int, Result]:
    """How many functions some work calls, and what it gives."""
    made = 0

    def note(_: object, event: str, __: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        result = work()
    finally:
        sys.setprofile(None)
    return made, result
