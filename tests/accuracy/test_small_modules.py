"""Classes of a package are made by the names of their arguments, and run on the first inputs that fit."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from small_modules import Package, make, names, update_and_compute  # noqa: E402

_TEXT = """
import torch

class Base(torch.nn.Module):
    def __init__(self, dim, bias=0.0):
        super().__init__()
        self.bias = bias
        self.layer = torch.nn.Linear(dim, dim)

class Layer(Base):
    def forward(self, x):
        return self.layer(x) + self.bias

class Handed(Base):
    def __init__(self, scale=2.0, **others):
        super().__init__(**others)
        self.scale = scale

    def forward(self, x):
        return self.layer(x) * self.scale

class Unknown(torch.nn.Module):
    def __init__(self, oracle):
        super().__init__()

class Count(torch.nn.Module):
    seen = 0

    def update(self, x):
        self.seen += len(x)

    def compute(self):
        return torch.tensor(float(self.seen))
"""


def _inputs() -> Iterator[tuple[Any, ...]]:
    yield (torch.rand(2, 3),)
    yield (torch.rand(2, 8),)


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made_up_layers.py").write_text(_TEXT)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "made_up_layers", raising=False)


def test_classes_that_need_what_nobody_names_are_left_out() -> None:
    assert names("made_up_layers", Package(arguments={"dim": 8})) == ["Count", "Handed", "Layer"]


@pytest.mark.parametrize("name", ["Layer", "Handed"])
def test_the_first_inputs_that_run_are_taken(name: str) -> None:
    """`Handed` takes what its base class needs without naming it."""
    model, inputs = make("made_up_layers", name, Package(arguments={"dim": 8}, inputs=_inputs))
    assert inputs[0].shape == (2, 8)
    model(*inputs).sum().backward()
    assert model.scale.grad is not None


def test_a_metric_starts_with_what_the_step_gives() -> None:
    model, inputs = make("made_up_layers", "Count", Package(inputs=_inputs, use=update_and_compute))
    assert float(model(*inputs)) == 2.0, "what was tried is not counted"


def test_nothing_that_runs_says_what_the_first_inputs_met() -> None:
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        make("made_up_layers", "Layer", Package(arguments={"dim": 5}, inputs=_inputs))
