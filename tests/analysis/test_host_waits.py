"""Which expressions make the host wait, and whether a wait finds anything, is asked for, or is wanted."""

from __future__ import annotations

import ast

import pytest
from of_text import call_at, facts_of, node_at

from perflint.analysis.feasibility.device_branches import is_without_cuda
from perflint.analysis.feasibility.hardware import asks_hardware
from perflint.analysis.transfers.redundant import copied_before, cut_later
from perflint.analysis.waits.clocked import reads_clock_behind
from perflint.analysis.waits.exceptional import is_exceptional
from perflint.analysis.waits.guarded import used_under_guard
from perflint.analysis.waits.reads import device_read
from perflint.analysis.waits.repeated_reads import read_before
from perflint.analysis.waits.truth_tests import certainty_asked
from perflint.analysis.waits.value_uses import Use, use_of

_HEAD = "import time\nimport torch\n"
_TRAIN = """
def train(model, loader, optimizer, verbose):
    for step, batch in enumerate(loader):
        loss = model(batch.cuda()).mean()
        loss.backward()
        optimizer.step()
        {}
"""


def test_a_loss_is_read_and_a_size_is_not() -> None:
    facts = facts_of(_HEAD + _TRAIN.format("here(loss.item(), loss.size(0), batch.cpu())"))
    assert device_read(call_at(facts, "loss.item()"), facts) is not None
    assert device_read(call_at(facts, "loss.size(0)"), facts) is None


def test_a_value_that_was_read_just_before_is_there() -> None:
    facts = facts_of(_HEAD + _TRAIN.format("here(loss.item()); there(float(loss.detach()))"))
    again = call_at(facts, "float(loss.detach())")
    assert read_before(again, again.args[0], facts)
    first = call_at(facts, "loss.item()")
    assert isinstance(first.func, ast.Attribute)
    assert not read_before(first, first.func.value, facts)


@pytest.mark.parametrize(
    ("asked", "certain"), [("loss > 3", True), ("loss is None", False), ("len(batch) > 3", False), ("verbose", False)]
)
def test_a_test_asks_the_device_for_a_tensor_alone(asked: str, *, certain: bool) -> None:
    facts = facts_of(_HEAD + _TRAIN.format(f"if {asked}: break"))
    branch = node_at(facts, f"if {asked}: break", ast.If)
    assert (certainty_asked(branch.test, facts) is not None) is certain


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("n = loss.item()\n        assert n < 10", Use.CHECK),
        ("n = loss.item()\n        y = torch.zeros(int(n))", Use.SIZE),
        ("n = loss.item()\n        y = names[n]", Use.LOOKUP),
        ("if loss.item() > 3: break", Use.BRANCH),
        ("losses.append(loss.item())", Use.OTHER),
    ],
)
def test_what_becomes_of_a_number(use: str, expected: Use) -> None:
    facts = facts_of(_HEAD + _TRAIN.format(use))
    assert use_of(call_at(facts, "loss.item()"), facts) is expected


@pytest.mark.parametrize(
    ("statement", "exceptional"),
    [
        ("if step % 100 == 0 and loss.item() > 3: break", True),
        ("assert step, loss.item()", True),
        ("if loss.item() > 3: break", False),
    ],
)
def test_what_runs_when_something_went_wrong_is_exceptional(statement: str, *, exceptional: bool) -> None:
    facts = facts_of(_HEAD + _TRAIN.format(statement))
    assert is_exceptional(call_at(facts, "loss.item()"), facts) is exceptional


def test_a_value_of_every_step_that_few_steps_use() -> None:
    body = "value = loss.item()\n        if step % 100 == 0:\n            print(value)"
    facts = facts_of(_HEAD + _TRAIN.format(body))
    found = used_under_guard(call_at(facts, "loss.item()"), facts)
    assert found is not None
    assert facts.text(found.guard.test) == "step % 100 == 0"
    facts = facts_of(_HEAD + _TRAIN.format(body.replace("print(value)", "pass\n        print(value)")))
    assert used_under_guard(call_at(facts, "loss.item()"), facts) is None


def test_a_clock_that_is_read_behind_a_wait() -> None:
    wait = "torch.cuda.synchronize()"
    facts = facts_of(_HEAD + _TRAIN.format(f"{wait}; took = time.time()"))
    assert reads_clock_behind(call_at(facts, wait), facts)
    facts = facts_of(_HEAD + _TRAIN.format(f"{wait}; loss.backward(); took = time.time()"))
    assert not reads_clock_behind(call_at(facts, wait), facts)


@pytest.mark.parametrize(
    ("test", "without"),
    [
        ("device.type == 'mps'", True),
        ("not torch.cuda.is_available()", True),
        ("device.type == 'cuda'", False),
        ("device", False),
    ],
)
def test_what_runs_on_other_devices_alone(test: str, *, without: bool) -> None:
    facts = facts_of(f"{_HEAD}def go(x, device):\n    if {test}:\n        return x.to(device)\n")
    assert is_without_cuda(call_at(facts, "x.to(device)"), facts) is without


@pytest.mark.parametrize(
    ("test", "asks"),
    [("torch.cuda.is_available()", True), ("many", True), ("args.parallel", False), ("many and fast", False)],
)
def test_a_test_of_the_machine_is_nobodys_choice(test: str, *, asks: bool) -> None:
    body = f"def go(args, fast):\n    many = torch.cuda.device_count() > 1\n    if {test}:\n        return args\n"
    facts = facts_of(_HEAD + body)
    assert asks_hardware(node_at(facts, f"if {test}: return args", ast.If).test, facts) is asks


def test_the_same_data_is_copied_twice_on_one_path_only() -> None:
    body = "def go(rows):\n    x = torch.tensor(rows)\n    a = x.cuda()\n    b = x.cuda() + 1\n    return a, b\n"
    facts = facts_of(_HEAD + body)
    calls = [part for part in ast.walk(facts.tree.module) if isinstance(part, ast.Call)]
    first, second = sorted((call for call in calls if facts.text(call) == "x.cuda()"), key=lambda call: call.lineno)
    assert copied_before(second, facts) is first
    assert copied_before(first, facts) is None


@pytest.mark.parametrize(("use", "cut"), [("y[:, :2]", True), ("y", False)])
def test_a_whole_is_copied_of_which_a_part_is_used(use: str, *, cut: bool) -> None:
    head = f"{_HEAD}from torch.utils.data import DataLoader\n"
    body = f"def go(data):\n    for x in DataLoader(data):\n        y = x.cuda()\n        here({use})\n"
    facts = facts_of(head + body)
    found = cut_later(call_at(facts, "x.cuda()"), facts)
    assert (found is not None) is cut
