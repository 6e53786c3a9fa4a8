"""What a route says of a module's forward that no loop of the program is seen to run."""

from __future__ import annotations

import pytest
from of_text import call_at, facts_of

from perflint.analysis.names.refs import Scope

NETS = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)


class Splitter(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return torch.split(x, 2)
"""
TRAINS = """

def train(batches, optimizer):
    net = {trained}
    split_before = isinstance(net, Splitter)
    for batch in batches:
        net(batch)[0].mean().backward()
        optimizer.step()
"""
USES = """

def loaded(path):
    return Splitter(torch.load(path))
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (NETS + TRAINS.format(trained="Net()") + USES, "no training of it is in sight"),
        (NETS + TRAINS.format(trained="Net()"), "called by whoever trains with it"),
        (NETS + USES, "called by whoever trains with it"),
    ],
    ids=["built beside a training", "not built here", "nothing is trained here"],
)
def test_what_is_built_beside_a_training_is_not_said_to_be_called_by_whoever_trains(text: str, said: str) -> None:
    facts = facts_of(text)
    _, route, _ = facts.heat_and_route(call_at(facts, "torch.split(x, 2)"))
    assert said in route[0].text


def test_a_forward_that_is_trained_is_called_in_the_loop() -> None:
    facts = facts_of(NETS + TRAINS.format(trained="Splitter(Net())") + USES)
    _, route, _ = facts.heat_and_route(call_at(facts, "torch.split(x, 2)"))
    assert route[0].text == "for batch in batches"


_OF_ONE_KIND = """
import torch
from torch import nn


class Plain(nn.Module):
    def forward(self, x, mask=None):
        return x.nonzero()


class Shifted(nn.Module):
    def forward(self, x, mask=None):
        return x


class PlainLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = Plain()

    def forward(self, x):
        return self.attend(x, mask=x)


class ShiftedLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = Shifted()

    def forward(self, x):
        return self.attend(x, mask=x)


class Given(nn.Module):
    def __init__(self, attend):
        super().__init__()
        self.attend = attend

    def forward(self, x):
        return self.attend(x, mask=x)
"""


def test_a_call_of_what_is_known_is_no_way_to_another_class_that_takes_the_same_keyword() -> None:
    facts = facts_of(_OF_ONE_KIND)
    callers = facts.program.constants.passing.callers(Scope("a.py", "Plain.forward"))
    assert {edge.caller.function for edge in callers} == {"PlainLayer.forward", "Given.forward"}
