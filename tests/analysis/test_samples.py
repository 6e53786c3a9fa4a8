"""Loops that hand out one sample per turn: what is given it, what a turn needs, and whether a batch gives the same."""

from __future__ import annotations

import ast

import pytest
from of_text import call_at, facts_of, node_at

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.handed_out import handed_out, is_several_texts, shows_each
from perflint.analysis.frequency.per_item_calls import edge_of_items, loop_header
from perflint.analysis.gradients.in_batches import changes_model, gives_the_same_in_batches
from perflint.analysis.gradients.model_calls import runs_network
from perflint.analysis.invariants.turn_dependence import feeds_itself, is_of_own_size, needed, turning_loops
from perflint.analysis.values.single_samples import is_of_nesting, makes_batch_of_one, makes_tokens, rows_of
from perflint.analysis.values.takers import takers

_LOOP = """
import torch
from torch import nn

def go(rows, net: nn.Linear):
    last = None
    for row in rows:
        {inside}
"""


def _facts(inside: str) -> FileFacts:
    return facts_of(_LOOP.format(inside=inside.replace("\n", "\n        ")))


def _loop(facts: FileFacts) -> ast.For:
    return next(part for part in ast.walk(facts.tree.module) if isinstance(part, ast.For))


def _run(facts: FileFacts) -> ast.Call:
    calls = (part for part in ast.walk(facts.tree.module) if isinstance(part, ast.Call))
    return next(call for call in calls if facts.text(call.func) == "net")


@pytest.mark.parametrize(
    ("inside", "given"),
    [
        ("net(row.to('cuda'))", ["net(row.to('cuda'))"]),
        ("x = row.float()\nnet(x)\nother(x)", ["net(x)", "other(x)"]),
        ("net(row.mean())", []),
        ("net(torch.cat((row, row), dim=1))", ["net(torch.cat((row, row), dim=1))"]),
    ],
)
def test_a_value_is_followed_through_moves_and_names_to_what_is_given_it(inside: str, given: list[str]) -> None:
    facts = _facts(inside)
    first = next(part for part in ast.walk(_loop(facts).body[0]) if isinstance(part, ast.Name) and part.id == "row")
    assert [facts.text(call) for call in takers(first, facts)] == given


def test_a_value_is_computed_from_names_that_the_loop_sets() -> None:
    facts = _facts("x = row * 2\ny = x + 1\nnet(y)")
    names, _ = needed(call_at(facts, "net(y)"), _loop(facts))
    assert names == {"net", "y", "x", "row"}
    assert [turning for turning, _ in turning_loops(call_at(facts, "net(y)"), facts)] == [_loop(facts)]


@pytest.mark.parametrize(
    ("inside", "feeds"),
    [
        ("last = net(last)", True),
        ("out = net(row)", False),
        ("history.append(net(history))", True),
        ("self.state = net(self.state)", True),
    ],
)
def test_a_turn_needs_what_an_earlier_one_gave(inside: str, *, feeds: bool) -> None:
    facts = _facts(inside)
    call = next(
        part for part in ast.walk(facts.tree.module) if isinstance(part, ast.Call) and facts.text(part.func) == "net"
    )
    assert feeds_itself(call, _loop(facts)) is feeds


@pytest.mark.parametrize(("inside", "own"), [("net(row)\nprint(row.shape)", True), ("net(row)", False)])
def test_samples_that_are_asked_for_their_size_have_their_own(inside: str, *, own: bool) -> None:
    facts = _facts(inside)
    assert is_of_own_size(call_at(facts, "net(row)").args[0], {"row"}, _loop(facts)) is own


@pytest.mark.parametrize(
    ("call", "one"),
    [
        ("x.unsqueeze(0)", True),
        ("x.unsqueeze(1)", False),
        ("x[:4].unsqueeze(0)", False),
        ("torch.tensor(x).unsqueeze(0)", False),
    ],
)
def test_an_unsqueeze_makes_a_batch_of_one(call: str, *, one: bool) -> None:
    facts = _facts(call)
    assert makes_batch_of_one(call_at(facts, call)) is one


def test_rows_and_texts_are_single_samples() -> None:
    facts = facts_of("for i in range(8):\n    a(x[i], x[i : i + 1], x[i + 1], x[i : i + 2])\n")
    loop = _loop(facts)
    assert [facts.text(row) for row, _ in rows_of(loop, list(ast.walk(loop)))] == ["x[i]", "x[i : i + 1]"]
    facts = _facts('tokenizer(row, return_tensors="pt")\ntokenizer(row)\nparse(row, return_tensors="pt")')
    calls = [part for part in ast.walk(facts.tree.module) if isinstance(part, ast.Call)]
    assert [makes_tokens(call) for call in calls] == [True, False, False]


def test_lists_in_lists_hold_any_sizes() -> None:
    facts = facts_of("def go(images, query, i):\n    return net(images[query][i])\n")
    assert is_of_nesting(node_at(facts, "images[query][i]", ast.Subscript), facts)
    assert not is_of_nesting(node_at(facts, "images[query]", ast.Subscript), facts)


@pytest.mark.parametrize(
    ("inside", "same"),
    [
        ("with torch.no_grad():\n    net(row)", True),
        ("with torch.no_grad():\n    net(row, past_key_values=last)", False),
        ("with torch.no_grad():\n    norm = nn.BatchNorm1d(4)\n    net(row)", True),
        ("norm = nn.BatchNorm1d(4)\nnet(row)", False),
        ("try:\n    with torch.no_grad():\n        net(row)\nexcept RuntimeError:\n    pass", False),
    ],
)
def test_a_batch_gives_each_sample_the_same(inside: str, *, same: bool) -> None:
    facts = _facts(inside)
    call = next(
        part for part in ast.walk(facts.tree.module) if isinstance(part, ast.Call) and facts.text(part.func) == "net"
    )
    assert gives_the_same_in_batches(call, facts) is same


@pytest.mark.parametrize(
    ("inside", "changes"), [("net.train()\nnet(row)", True), ("net.train(False)\nnet(row)", False), ("net(row)", False)]
)
def test_a_loop_changes_the_model_that_it_runs(inside: str, *, changes: bool) -> None:
    facts = _facts(inside)
    assert changes_model(_loop(facts), call_at(facts, "net(row)")) is changes


def test_what_only_changes_an_image_is_no_network() -> None:
    facts = facts_of("def go(thing, net, row):\n    net(row)\n    thing.resize(row)\n    thing.encode_image(row)\n")
    assert runs_network(call_at(facts, "net(row)"), facts, sure=False)
    assert not runs_network(call_at(facts, "thing.resize(row)"), facts, sure=True)
    encodes = call_at(facts, "thing.encode_image(row)")
    assert [runs_network(encodes, facts, sure=sure) for sure in (False, True)] == [False, True]


@pytest.mark.parametrize(
    ("rows", "found"),
    [("rows", True), ("batches", False), ("[first, second]", False), ("range(8)", False)],
)
def test_a_function_is_called_for_each_item_of_a_loop_elsewhere(rows: str, *, found: bool) -> None:
    facts = facts_of(
        f"def one(net, x):\n    return net(x)\n\ndef go(rows, net):\n    for row in {rows}:\n        one(net, row)\n"
    )
    function = facts.tree.module.body[0]
    assert isinstance(function, ast.FunctionDef)
    edge = edge_of_items(facts.own_scope(function), {"x"}, {"net"}, facts)
    assert (edge is not None) is found
    if edge is not None:
        assert loop_header(edge, facts) == rows
        assert edge_of_items(facts.own_scope(function), {"net"}, {"x"}, facts) is None


def test_what_a_loop_goes_through_is_told_without_its_progress_bar() -> None:
    facts = facts_of('for x in tqdm(rows, desc="by batch"):\n    print(x)\n')
    assert handed_out(_loop(facts).iter, facts) == "tqdm rows"
    facts = facts_of("for x in examples:\n    print(x)\n")
    assert shows_each(_loop(facts), facts)
    facts = facts_of("a(texts, [text], [one, two])\n")
    assert [is_several_texts(item, facts) for item in call_at(facts, "a(texts, [text], [one, two])").args] == [
        True,
        False,
        True,
    ]
