"""Twice as much code is about twice as much work: counted in nodes that are gone through, never by a clock."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

from perflint import engine
from perflint.project.discovery import discover
from perflint.project.settings import load_settings
from perflint.rule_api.registry import load_rules

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
def test_walks_grow_with_the_code(shape: Callable[[int], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walked = 0

    def counting(walk: Callable[[ast.AST], Iterator[ast.AST]]) -> Callable[[ast.AST], Iterator[ast.AST]]:
        def counted(node: ast.AST) -> Iterator[ast.AST]:
            nonlocal walked
            for part in walk(node):
                walked += 1
                yield part

        return counted

    for name in ("aliases", "read_twice", "sources", "waits"):
        module = import_module(f"perflint.rules._shared.{name}")
        monkeypatch.setattr(module, "walk", counting(module.walk))
    (tmp_path / "perflint.toml").write_text("time-limit = 0\n")
    monkeypatch.chdir(tmp_path)
    settings = load_settings(Path.cwd())
    rules = [rule() for rule in load_rules() if rule.code in ("TPL101", "TPL201", "TPL308")]
    counts, findings = [], []
    for count in (20, 40):
        walked = 0
        (tmp_path / "train.py").write_text(shape(count))
        report = engine.check(discover(["."], settings), engine.Options(settings, rules, cache=False, jobs=1))
        counts.append(walked)
        findings.append(len(report.findings))
        assert report.errors == ()
    assert findings[1] >= findings[0] >= 1
    assert counts[1] <= 2.6 * counts[0] + 100
