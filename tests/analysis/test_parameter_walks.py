"""Walks over parameters, how many they go through, and what is done to each."""

from __future__ import annotations

import ast

import pytest
from of_text import facts_of

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.parameter_updates import treats_alike, updates_of_each
from perflint.analysis.gradients.parameter_walks import walks_few, walks_parameters

_HEAD = """
import torch
from torch import nn

class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return x * self.scale

def averaged(model):
    return zip(model.parameters(), model.buffers())

def go(model, ema, items, one: Scale, layer: nn.Linear):
    held = dict(model.named_parameters())
    last = model.classifier.parameters()
"""


def _loop(header: str, body: str = "pass") -> tuple[ast.For, FileFacts]:
    facts = facts_of(f"{_HEAD}    for {header}:\n        " + body.replace("\n", "\n        ") + "\n")
    return next(part for part in ast.walk(facts.tree.module) if isinstance(part, ast.For)), facts


@pytest.mark.parametrize(
    ("over", "walks"),
    [
        ("model.parameters()", True),
        ("zip(model.parameters(), ema.parameters())", True),
        ("model.state_dict().items()", True),
        ("averaged(model)", True),
        ("held.items()", True),
        ("items", False),
        ("model.children()", False),
    ],
)
def test_a_walk_goes_through_all_parameters(over: str, *, walks: bool) -> None:
    loop, facts = _loop(f"p in {over}")
    assert walks_parameters(loop.iter, facts) is walks


@pytest.mark.parametrize(
    ("over", "few"),
    [
        ("model.parameters()", False),
        ("one.parameters()", True),
        ("layer.parameters()", True),
        ("last", True),
        ("model._parameters.values()", True),
    ],
)
def test_a_layer_and_the_last_layers_have_few_parameters(over: str, *, few: bool) -> None:
    loop, facts = _loop(f"p in {over}")
    assert walks_few(loop.iter, facts) is few


@pytest.mark.parametrize(
    ("body", "methods"),
    [
        ("p.mul_(0.9).add_(q)", ["mul_", "add_"]),
        ("p.data = 0.9 * p.data", ["copy_"]),
        ("p.data = q.data", []),
        ("p.copy_(q)", []),
        ("p.grad *= 2", ["Mult"]),
        ("other.mul_(2)", []),
    ],
)
def test_updates_change_what_the_loop_hands_out(body: str, methods: list[str]) -> None:
    loop, _ = _loop("p, q in zip(model.parameters(), ema.parameters())", body)
    assert [update.method for update in updates_of_each(loop)] == methods


@pytest.mark.parametrize(
    ("body", "alike"),
    [
        ("p.mul_(0.9)", True),
        ("if p.requires_grad:\n    p.mul_(0.9)", True),
        ('if "bias" in name:\n    p.mul_(0.9)', False),
        ("p.mul_(p.norm())", False),
        ("if p.ndim > 1:\n    p.mul_(0.9)", False),
    ],
)
def test_all_parameters_are_treated_alike(body: str, *, alike: bool) -> None:
    loop, _ = _loop("name, p in model.named_parameters()", body)
    assert treats_alike(loop) is alike
