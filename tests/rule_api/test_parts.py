"""Which part of the program pays for a finding is told by what makes its place hot."""

from __future__ import annotations

import textwrap

from perflint import testing
from perflint.finding import Part
from perflint.rule_api.registry import load_rules

_HEAD = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(x) / x.max().item()
"""
_TRAINING = """

    def train(data):
        net = Net().cuda()
        optimizer = torch.optim.AdamW(net.parameters(), fused=True)
        for x in DataLoader(data, pin_memory=True, batch_size=64):
            net(x.cuda(non_blocking=True)).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
"""
_EVALUATION = """

    @torch.no_grad()
    def evaluate(net, data):
        total = 0.0
        for x in DataLoader(data, pin_memory=True, batch_size=64):
            total += net(x.cuda(non_blocking=True)).mean().item()
        return total


    def main(data):
        return evaluate(Net().cuda().eval(), data)
"""


def parts(text: str) -> set[Part]:
    rules = [rule() for rule in load_rules() if rule.code == "TPL201"]
    found = testing.checked({"program.py": textwrap.dedent(text)}, rules).findings
    return {one.part for one in found if "x.max" in one.message}


def test_what_training_runs_is_training() -> None:
    assert parts(_HEAD + _TRAINING) == {Part.TRAINING}


def test_what_an_evaluation_alone_runs_is_evaluation() -> None:
    assert parts(_HEAD + _EVALUATION) == {Part.EVALUATION}


def test_a_module_that_no_program_runs_is_in_none() -> None:
    assert parts(_HEAD) == {Part.UNSEEN}
