"""What a loop keeps beyond its iterations, with or without a graph, and what is read of it."""

from __future__ import annotations

import ast

import pytest
from of_text import call_at, facts_of, node_at

from perflint.analysis.aliases.accumulators import (
    Accumulated,
    accumulated,
    begins_here,
    is_read_for_numbers,
    outlives_iteration,
    uses_of_accumulated,
)
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.carried import carries_graph, may_carry_graph
from perflint.analysis.gradients.number_uses import becomes_text
from perflint.analysis.gradients.walked_back import (
    goes_back,
    holds_walked_back,
    is_itself_walked_back,
    is_part_of_walked_back,
    is_walked_back,
    is_walked_back_with,
)
from perflint.analysis.values.own_tensors import has_own_tensors

_LOOP = """
import torch
from torch import nn

def train(loader, optimizer):
    net = nn.Linear(4, 4)
    {start}
    for x, y in loader:
        {inside}
        total += loss
    {behind}
"""


def _facts(*, start: str = "total = 0.0", inside: str = "loss = net(x).mean()", behind: str = "return 0") -> FileFacts:
    inside, behind = inside.replace("\n", "\n        "), behind.replace("\n", "\n    ")
    return facts_of(_LOOP.format(start=start, inside=inside, behind=behind))


def _added(facts: FileFacts) -> tuple[ast.AugAssign, ast.For]:
    added = node_at(facts, "total += loss", ast.AugAssign)
    loop = facts.loops(added)[0]
    assert isinstance(loop, ast.For)
    return added, loop


def _total(facts: FileFacts) -> Accumulated:
    kept = accumulated(_added(facts)[0], facts)
    assert kept is not None
    return kept


@pytest.mark.parametrize(
    ("start", "inside", "outlives"),
    [
        ("total = 0.0", "loss = net(x).mean()", True),
        ("total = 0.0", "total = 0.0\nloss = net(x).mean()", False),
        ("pass", "loss = net(x).mean()", False),
    ],
)
def test_a_sum_outlives_an_iteration_that_does_not_set_it_anew(start: str, inside: str, *, outlives: bool) -> None:
    facts = _facts(start=start, inside=inside)
    added, loop = _added(facts)
    kept = accumulated(added, facts)
    assert kept is not None
    assert (kept.name, kept.value) == ("total", added.value)
    assert outlives_iteration(kept, added, loop, facts) is outlives


@pytest.mark.parametrize(
    ("behind", "numbers"),
    [
        ("print(total)", True),
        ("return total.item() / 8", True),
        ("return total", False),
        ("print(total.grad_fn)", False),
        ("print(total)\ntotal.backward()", False),
        ("pass", False),
    ],
)
def test_all_uses_of_a_sum_read_numbers(behind: str, *, numbers: bool) -> None:
    facts = _facts(behind=behind)
    assert is_read_for_numbers(_total(facts), _added(facts)[0], facts) is numbers


def test_what_is_bound_behind_the_loop_is_another_value() -> None:
    facts = _facts(behind="print(total)\ntotal = total.detach()\nreturn total")
    uses = uses_of_accumulated(_total(facts), _added(facts)[0], facts)
    assert [use.lineno for use in uses] == [11, 12]


@pytest.mark.parametrize(
    ("start", "here"),
    [("total = 0.0", True), ("total = torch.zeros(1)", True), ("total = net.total", False), ("total = x = []", False)],
)
def test_a_sum_begins_as_a_value_that_nobody_else_has(start: str, *, here: bool) -> None:
    facts = _facts(start=start)
    assert begins_here("total", _added(facts)[0], facts) is here


@pytest.mark.parametrize(
    ("inside", "walked"),
    [
        ("loss = net(x).mean()\nloss.backward()", True),
        ("loss = net(x).mean()\nscaler.scale(loss).backward()", True),
        ("loss = net(x).mean()\nloss.backward(retain_graph=True)", False),
        ("loss = net(x).mean()\nloss.backward()\nloss = net(y).mean()", False),
        ("loss = net(x).mean()", False),
    ],
)
def test_a_value_that_backward_is_called_of_has_lost_its_graph(inside: str, *, walked: bool) -> None:
    facts = _facts(inside=inside)
    added, loop = _added(facts)
    assert is_walked_back(added.value, loop, facts) is walked
    assert goes_back(loop) is ("backward" in inside)


def test_parts_of_a_sum_and_items_of_a_dict_are_walked_back_with_the_whole() -> None:
    facts = _facts(inside="loss = net(x).mean()\nboth = loss + net(y).mean()\nboth.backward()")
    added, loop = _added(facts)
    assert isinstance(added.value, ast.Name)
    assert is_part_of_walked_back(added.value, loop, facts)
    assert not is_itself_walked_back(added.value, loop, facts)
    facts = _facts(inside='loss = net(x)\nloss["all"].backward()')
    added, loop = _added(facts)
    assert holds_walked_back(added.value, loop, facts)


def test_a_backward_under_a_condition_does_not_run_on_each_iteration() -> None:
    always = _facts(inside="loss = net(x).mean()\nloss.backward()")
    seldom = _facts(inside="loss = net(x).mean()\nif y:\n    loss.backward()")
    assert is_walked_back_with(*_added(always), always)
    assert not is_walked_back_with(*_added(seldom), seldom)


@pytest.mark.parametrize(
    ("value", "carries"),
    [
        ("net(x).mean()", True),
        ("net(x).loss", True),
        ("net(x)", False),
        ("net(x).mean() + 1", True),
        ("x.mean()", False),
    ],
)
def test_a_graph_is_carried_from_a_forward_of_the_same_iteration(value: str, *, carries: bool) -> None:
    facts = _facts(inside=f"loss = {value}\nhere({value})")
    given = call_at(facts, f"here({value})").args[0]
    assert carries_graph(given, _added(facts)[1], facts) is carries


def test_layers_and_numbers_of_libraries_carry_none_by_their_form() -> None:
    facts = _facts(inside="loss = nn.Linear(4, 4)")
    assert not may_carry_graph(node_at(facts, "nn.Linear(4, 4)", ast.Call), facts)
    assert may_carry_graph(_added(facts)[0].value, facts)


@pytest.mark.parametrize(
    ("shown", "text"), [('f"{total}"', True), ('f"{total:.2f}"', False), ('"%.2f" % total', False)]
)
def test_text_without_a_format_names_the_graph(shown: str, *, text: bool) -> None:
    facts = _facts(behind=f"return {shown}")
    [use] = uses_of_accumulated(_total(facts), _added(facts)[0], facts)
    assert becomes_text(use, facts) is text


def test_a_project_has_tensors_of_its_own() -> None:
    assert not has_own_tensors(_facts())
    assert has_own_tensors(facts_of("import torch\n\nclass Mine(torch.Tensor):\n    pass\n"))
    assert has_own_tensors(facts_of("class Loss:\n    def backward(self):\n        pass\n"))
