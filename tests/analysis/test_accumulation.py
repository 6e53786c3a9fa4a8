"""Micro-batches, what reduces their gradients, and loops that compute row by row or fill masks."""

from __future__ import annotations

import ast

import pytest
from of_text import call_at, facts_of

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.accumulation import clips_each_time, gathers_for
from perflint.analysis.frequency.over_dimensions import goes_over_dimension
from perflint.analysis.gradients.reductions import minds_reductions, no_sync_around_backward_only
from perflint.analysis.gradients.under_ddp import trains_under_ddp
from perflint.analysis.invariants.in_loops import has_constant_inputs, has_same_inputs
from perflint.analysis.phases.loop_purpose import drains, tries_until
from perflint.analysis.values.row_by_row import computed_by_rows, is_same_for_all_rows
from perflint.analysis.values.spans import fills_spans
from perflint.finding import Confidence

_TRAIN = """
import torch
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel

def train(loader, accumulation=16):
    net = DistributedDataParallel(nn.Linear(4, 4).cuda())
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        loss = net(x).sum()
        {backward}
        {step}
"""
_STEP = "if (i + 1) % accumulation == 0:\n            optimizer.step()\n            optimizer.zero_grad()"


def _train(backward: str = "loss.backward()", step: str = _STEP) -> FileFacts:
    return facts_of(_TRAIN.format(backward=backward, step=step))


@pytest.mark.parametrize(
    ("step", "gathers"),
    [
        (_STEP, True),
        ("optimizer.step()", False),
        ("if i % accumulation == 0:\n            report()", False),
    ],
)
def test_several_backward_passes_come_before_one_step(step: str, *, gathers: bool) -> None:
    facts = _train(step=step)
    found = gathers_for(call_at(facts, "loss.backward()"), facts)
    assert (None if found is None else facts.text(found)) == ("optimizer.step()" if gathers else None)


def test_a_clip_of_each_micro_batch_needs_all_gradients() -> None:
    clip = "torch.nn.utils.clip_grad_norm_(net.parameters(), 1)"
    each, last = _train(step=f"{clip}\n        {_STEP}"), _train(step=f"{_STEP}\n            {clip}")
    assert clips_each_time(call_at(each, "loss.backward()"), each)
    assert not clips_each_time(call_at(last, "loss.backward()"), last)


def test_a_file_trains_under_ddp_and_through_it() -> None:
    assert trains_under_ddp(_train()) is Confidence.HIGH
    assert (
        trains_under_ddp(facts_of(_TRAIN.format(backward="", step="").replace("DistributedDataParallel(", "("))) is None
    )
    inner = _TRAIN.replace("net(x)", "net.module(x)").format(backward="loss.backward()", step=_STEP)
    assert trains_under_ddp(facts_of(inner)) is None


def test_a_no_sync_around_the_backward_alone_does_nothing() -> None:
    facts = _train(backward="with net.no_sync():\n            loss.backward()")
    useless = no_sync_around_backward_only(call_at(facts, "loss.backward()"), facts)
    assert useless is not None
    assert facts.text(useless) == "net.no_sync()"
    assert minds_reductions(call_at(facts, "loss.backward()"), facts)
    assert no_sync_around_backward_only(call_at(_train(), "loss.backward()"), _train()) is None
    assert not minds_reductions(call_at(_train(), "loss.backward()"), _train())


_ROWS = """
import torch

def go(n, rows):
    x = torch.rand(8, 4)
    out = torch.zeros(8, 4)
    mask = torch.ones(n, n)
    net = None
    for i in {over}:
        {body}
"""


def _loop(body: str = "pass", over: str = "range(x.shape[0])") -> tuple[ast.For, FileFacts]:
    facts = facts_of(_ROWS.format(body=body.replace("\n", "\n        "), over=over))
    return next(part for part in ast.walk(facts.tree.module) if isinstance(part, ast.For)), facts


@pytest.mark.parametrize(
    ("over", "goes"),
    [
        ("range(x.shape[0])", True),
        ("range(len(x))", True),
        ("range(0, x.size(0))", True),
        ("range(100)", True),
        ("range(4)", False),
        ("range(n)", False),
        ("rows", False),
    ],
)
def test_loops_go_over_a_dimension(over: str, *, goes: bool) -> None:
    loop, facts = _loop(over=over)
    assert goes_over_dimension(loop.iter, facts) is goes


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("out[i] = x[i] * 2", "out"),
        ("row = x[i].exp()\nout[i] = row + 1", "out"),
        ("out[i] = out[i - 1] + x[i]", None),
        ("out[i] = x[i] @ x[i]", None),
        ("out[i] = 0", None),
    ],
)
def test_rows_are_computed_from_the_same_rows(body: str, name: str | None) -> None:
    loop, facts = _loop(body)
    assert computed_by_rows(loop, "i", facts) == name


def test_an_index_of_a_tensor_gives_the_same_for_all_rows() -> None:
    _, facts = _loop("here(x[i].norm() / 2, x[i + 1])")
    one, other = call_at(facts, "here(x[i].norm() / 2, x[i + 1])").args
    assert is_same_for_all_rows(one, "i", set(), facts)
    assert not is_same_for_all_rows(other, "i", set(), facts)


@pytest.mark.parametrize(
    ("body", "name"), [("mask[i, : i + 1] = 0", "mask"), ("mask[i, : i + 1] = x[0]", None), ("out[i, :2] = 0", None)]
)
def test_spans_fill_a_square_mask(body: str, name: str | None) -> None:
    loop, facts = _loop(body, "range(n)")
    assert fills_spans(loop, facts) == name


def test_inputs_of_a_call_are_the_same_on_each_turn() -> None:
    loop, facts = _loop("a(n)\nb(i)\nc(3)")
    assert has_same_inputs(call_at(facts, "a(n)"), loop, facts)
    assert not has_same_inputs(call_at(facts, "b(i)"), loop, facts)
    assert [has_constant_inputs(call_at(facts, text), facts) for text in ("a(n)", "c(3)")] == [False, True]


def test_loops_drain_a_container_or_try_until_something_works() -> None:
    facts = facts_of("def go(hooks):\n    while hooks:\n        hooks.pop()\n")
    assert drains(next(part for part in ast.walk(facts.tree.module) if isinstance(part, ast.While)))
    loop, _ = _loop("try:\n    a(n)\n    break\nexcept OSError:\n    pass")
    assert tries_until(loop)
    assert not tries_until(_loop("a(n)")[0])
