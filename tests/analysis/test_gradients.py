"""Which calls run a network, which modules are frozen, and whether a graph of a result is wanted anywhere."""

from __future__ import annotations

import pytest
from of_text import call_at, facts_of

from perflint.analysis.gradients import escaping
from perflint.analysis.gradients.frozen import is_frozen
from perflint.analysis.gradients.helper_forwards import forward_behind
from perflint.analysis.gradients.model_calls import is_loss_function, is_model_call
from perflint.analysis.gradients.results import Followed, forwards_behind, has_no_graph

_HEAD = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)

"""


@pytest.mark.parametrize(
    ("call", "runs"),
    [("net(x)", True), ("net.forward(x)", True), ("criterion(x)", False), ("x.view(4)", False), ("Net()", False)],
)
def test_a_call_runs_a_network_by_its_kind_or_its_name(call: str, *, runs: bool) -> None:
    facts = facts_of(f"{_HEAD}def go(x, criterion):\n    net = Net()\n    return {call}\n")
    assert is_model_call(call_at(facts, call), facts) is runs
    assert is_loss_function(call_at(facts, call).func, facts) is (call == "criterion(x)")


@pytest.mark.parametrize(
    ("use", "ends"),
    [
        ("y.argmax(1)", True),
        ("y.detach().mean()", True),
        ("y.max(1)[1]", True),
        ("(y.softmax(1) > 0.5).sum()", True),
        ("y.mean()", False),
        ("keep(y)", False),
    ],
)
def test_a_result_is_followed_to_where_no_gradient_flows_on(use: str, *, ends: bool) -> None:
    facts = facts_of(f"{_HEAD}def go(net: Net, x):\n    y = net(x)\n    return {use}\n")
    assert Followed(facts, by_value=True).ends(call_at(facts, "net(x)"), 4) is ends


def test_forwards_are_found_behind_arithmetic_and_names() -> None:
    facts = facts_of(f"{_HEAD}def go(net: Net, x):\n    y = net(x)\n    z = y * 2\n    return here(z[0])\n")
    found = list(forwards_behind(call_at(facts, "here(z[0])").args[0], facts, 4))
    assert found == [call_at(facts, "net(x)")]


@pytest.mark.parametrize(
    "frozen",
    [
        "for weight in net.parameters():\n        weight.requires_grad = False",
        "net.requires_grad_(False)",
        "freeze(net)",
    ],
)
def test_a_module_is_frozen_by_what_takes_its_gradients(frozen: str) -> None:
    text = f"{_HEAD}def go(x, freeze):\n    net = Net()\n    {{}}\n    return net(x)\n"
    facts = facts_of(text.format(frozen))
    assert is_frozen(call_at(facts, "net(x)"), facts)
    assert not is_frozen(call_at(facts_of(text.format("pass")), "net(x)"), facts_of(text.format("pass")))


def test_no_graph_is_recorded_where_gradients_are_off() -> None:
    facts = facts_of(f"{_HEAD}def go(net: Net, x):\n    with torch.no_grad():\n        net(x)\n    return net(x + 1)\n")
    assert has_no_graph(call_at(facts, "net(x)"), facts)
    assert not has_no_graph(call_at(facts, "net(x + 1)"), facts)


def test_a_helper_runs_a_forward_of_what_it_is_given() -> None:
    helper = "def encode(net: Net, text, scale):\n    with torch.no_grad():\n        return net(text) * scale\n\n"
    facts = facts_of(f"{_HEAD}{helper}def go(net: Net, text, scales):\n    return encode(net, text, scales[0])\n")
    found = forward_behind(call_at(facts, "encode(net, text, scales[0])"), facts)
    assert found is not None
    assert sorted(facts.text(item) for item in found.arguments) == ["net", "text"]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("print(f'{y}')", "text"),
        ("keep(y)", "handed"),
        ("results += [y]", "argument"),
        ("print(y.argmax())", ""),
        ("own = []\n        own.append(y.item())", ""),
    ],
)
def test_how_a_result_with_a_graph_leaves_a_function(statement: str, reason: str) -> None:
    facts = facts_of(
        f"{_HEAD}def go(net: Net, x, keep, results):\n    for _ in x:\n        y = net(x)\n        {statement}\n"
    )
    function = facts.tree.function_of(call_at(facts, "net(x)"))
    assert function is not None
    parts = facts.body(function)
    made = escaping.made_from_forwards(parts, facts)
    assert "y" in made
    assert (escaping.shown_as_text(parts, made, facts) is not None) is (reason == "text")
    assert (escaping.handed_out(function, parts, facts) is not None) is (reason == "handed")
    assert any(escaping.grows_argument(part, function, made, facts) for part in parts) is (reason == "argument")
