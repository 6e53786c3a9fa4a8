"""Loaders: how often workers start, where options stand, whether batches are copied; modules that are moved."""

from __future__ import annotations

import ast

import pytest
from of_text import call_at, facts_of, node_at

from perflint.analysis.feasibility.hardware import is_on_a_mac
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.ways_without import is_switched_off_by_some
from perflint.analysis.loading.copied_batches import is_copied
from perflint.analysis.loading.option_dicts import bound_options, is_given_one_of, loader_with
from perflint.analysis.loading.worker_starts import is_made_each_epoch, spawns_workers
from perflint.analysis.transfers.module_moves import comes_and_goes, goes_to_device, is_any_argument, is_moved_around

_HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader

"""


def _loader(facts: FileFacts) -> ast.Call:
    calls = (part for part in ast.walk(facts.tree.module) if isinstance(part, ast.Call))
    return next(call for call in calls if facts.text(call.func) == "DataLoader")


@pytest.mark.parametrize(
    ("text", "anew"),
    [
        ("def go(data):\n    for epoch in range(9):\n        for x in DataLoader(data):\n            net(x)\n", True),
        ("def make(data, epoch):\n    return DataLoader(data)\n", True),
        ("def make(data):\n    return DataLoader(data)\n", False),
    ],
)
def test_a_loader_lasts_for_one_epoch(text: str, *, anew: bool) -> None:
    facts = facts_of(_HEAD + text)
    assert is_made_each_epoch(_loader(facts), facts) is anew


@pytest.mark.parametrize(
    ("options", "spawns"),
    [("", False), (', multiprocessing_context="spawn"', True), (', multiprocessing_context="fork"', False)],
)
def test_workers_start_by_spawn(options: str, *, spawns: bool) -> None:
    facts = facts_of(f"{_HEAD}loader = DataLoader(data{options})\n")
    assert spawns_workers(_loader(facts), facts) is spawns


def test_options_stand_in_a_dict() -> None:
    text = "def go(data, other):\n    kwargs = {'num_workers': 4}\n    both = {}\n    both.update(kwargs)\n"
    facts = facts_of(f"{_HEAD}{text}    return DataLoader(data, **both)\n")
    options = node_at(facts, "{'num_workers': 4}", ast.Dict)
    assert bound_options(options, facts) == "kwargs"
    assert loader_with("kwargs", options, facts) is _loader(facts)
    assert not is_given_one_of(_loader(facts), facts)
    text = "def go(data, other):\n    kwargs = {'num_workers': 4} if other else {}\n"
    facts = facts_of(f"{_HEAD}{text}    return DataLoader(data, **kwargs)\n")
    assert is_given_one_of(_loader(facts), facts)


@pytest.mark.parametrize(
    ("body", "copied"),
    [
        ("net(x.to('cuda')).sum().backward()", True),
        ("net(x).sum().backward()", False),
        ("net(x.float().to('cuda')).sum().backward()", False),
    ],
)
def test_batches_are_copied_in_the_loops_over_them(body: str, *, copied: bool) -> None:
    facts = facts_of(f"{_HEAD}def go(data, net):\n    for x in DataLoader(data):\n        {body}\n")
    assert is_copied(_loader(facts), facts) is copied


def test_a_loader_that_is_made_a_list_is_not_copied() -> None:
    facts = facts_of(f"{_HEAD}def go(data):\n    return list(DataLoader(data))\n")
    assert not is_copied(_loader(facts), facts)


def test_moves_of_a_module_go_to_a_device_and_back() -> None:
    facts = facts_of(
        f"{_HEAD}def go(net: nn.Linear, vae: nn.Linear, device, before):\n"
        "    net.to(device)\n    net.to('cpu')\n    vae.to(device)\n    vae.to(before.device)\n    net.to(torch.half)\n"
    )
    net, vae = call_at(facts, "net.to(device)"), call_at(facts, "vae.to(device)")
    assert isinstance(net.func, ast.Attribute)
    assert isinstance(vae.func, ast.Attribute)
    assert [goes_to_device(call_at(facts, text), facts) for text in ("net.to(device)", "net.to('cpu')")] == [
        True,
        False,
    ]
    assert not goes_to_device(call_at(facts, "net.to(torch.half)"), facts)
    assert comes_and_goes(net.func.value, facts)
    assert not comes_and_goes(vae.func.value, facts)
    assert is_moved_around(vae.func.value, vae, facts)


def test_a_helper_moves_whatever_it_is_handed() -> None:
    text = "def move(item, device):\n    if isinstance(item, nn.Module):\n        return item.to(device)\n"
    facts = facts_of(_HEAD + text)
    call = call_at(facts, "item.to(device)")
    assert isinstance(call.func, ast.Attribute)
    assert is_any_argument(call.func.value, call, facts)


def test_code_stands_where_metal_is_there() -> None:
    facts = facts_of(
        f"{_HEAD}def go(net):\n    if torch.backends.mps.is_available():\n        net.to('mps')\n    net.eval()\n"
    )
    assert is_on_a_mac(call_at(facts, "net.to('mps')"), facts)
    assert not is_on_a_mac(call_at(facts, "net.eval()"), facts)


def test_gradients_are_off_on_some_ways_into_a_function() -> None:
    text = "def run(net, x):\n    return net(x)\n\n"
    text += "def look(net, x):\n    with torch.no_grad():\n        return run(net, x)\n"
    facts = facts_of(_HEAD + text)
    scope = facts.scope(call_at(facts, "net(x)"))
    assert is_switched_off_by_some(scope, facts)
    facts = facts_of(_HEAD + text.replace("no_grad", "enable_grad"))
    assert not is_switched_off_by_some(scope, facts)
