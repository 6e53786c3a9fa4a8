"""Which functions run several times in one step."""

from __future__ import annotations

import pytest

from perflint.analysis.names.refs import Scope
from perflint.analysis.program import Program
from perflint.ir.survey import survey
from perflint.syntax.file import SourceFile
from perflint.syntax.parse import parse

_STEP = """
def train(loader, optimizer):
    for batch in loader:
        loss = step(batch)
        loss.backward()
        optimizer.step()
"""


def several(code: str, function: str = "helper") -> bool:
    source = SourceFile("train.py", "import torch\nfrom torch import nn\n" + code + _STEP)
    program = Program({"train.py": survey(parse(source), source.lines)})
    return program.runs_several_times(Scope("train.py", function))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return helper(x)", False),
        ("return helper(x) + helper(x)", True),
        ("if x.a: return helper(x)\n    return helper(-x)", False),
        ("return sum(helper(p) for p in x)", True),
        ("for p in x: y = helper(p)\n    return y", True),
        ("return between(x)", False),
        ("return [between(p) for p in x]", True),
    ],
)
def test_calls_in_a_step_are_counted(body: str, expected: bool) -> None:
    code = f"def helper(x): return x.item()\ndef between(x): return helper(x)\ndef step(x):\n    {body}\n"
    assert several(code) is expected


def test_a_loop_around_the_steps_does_not_count() -> None:
    code = "def helper(x): return x.item()\ndef step(x): return helper(x)\n"
    assert not several(code + "def main(loader, optimizer):\n    for epoch in range(9): train(loader, optimizer)\n")


_LAYER = (
    "class Layer(nn.Module):\n    def __init__(self): super().__init__()\n    def forward(self, x): return x.item()\n"
)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("self.one = Layer()", False),
        ("self.one, self.two = Layer(), Layer()", True),
        ("self.all = nn.ModuleList([Layer() for _ in range(4)])", True),
        ("for _ in range(4): self.add(self.make())\n    def make(self): return Layer()", True),
        ("self.one = self.make()\n    @classmethod\n    def make(cls): return Layer()", False),
    ],
)
def test_a_forward_runs_once_for_each_instance(made: str, expected: bool) -> None:
    model = f"class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {made}\n"
    assert several(_LAYER + model + "def step(x): return Net()(x)\n", "Layer.forward") is expected


def test_a_part_of_what_there_are_many_of_runs_as_often() -> None:
    inner = (
        "class Block(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layer = Layer()\n"
    )
    outer = "def make(): return nn.ModuleList([Block() for _ in range(4)])\ndef step(x): return x\n"
    assert several(_LAYER + inner + outer, "Layer.forward")


def test_a_model_that_is_made_for_each_run_is_one_in_each_step() -> None:
    assert not several(_LAYER + "def step(x): return x\nfor fold in range(5): model = Layer()\n", "Layer.forward")
