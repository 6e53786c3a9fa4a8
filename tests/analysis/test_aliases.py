"""Which memory a value may lie in, whether it is written into after it was read, and which modules share nothing."""

from __future__ import annotations

import ast

import pytest
from of_text import call_at, facts_of, node_at

from perflint.analysis.aliases.owned_modules import is_owned
from perflint.analysis.aliases.points_to import Memory, meet
from perflint.analysis.aliases.read_only import unread
from perflint.analysis.aliases.writes import changes_later, is_written_in

_HEAD = "import torch\nfrom torch import nn\nimport copy\n"


def moved(body: str) -> bool:
    """Whether what `.cuda()` reads in a function may be changed later."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    facts = facts_of(f"{_HEAD}def go(x, rows, batch, loader):\n{lines}")
    call = next(
        part
        for part in ast.walk(facts.tree.module)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "cuda"
    )
    assert isinstance(call.func, ast.Attribute)
    return changes_later(call.func.value, call, facts)


@pytest.mark.parametrize(
    "body",
    [
        "y = x.cuda()\nx.add_(1)",
        "part = x[0]\ny = x.cuda()\npart.zero_()",
        "y = x.view(-1).cuda()\nx[0] = 1",
        "y = x.cuda()\nfill(x)",
        "for row in rows:\n    y = x.cuda()\n    x[0] = row",
        "y = batch['a'].cuda()\nbatch['a'].mul_(2)",
    ],
)
def test_what_is_written_into_by_any_name_changes_later(body: str) -> None:
    assert moved(body)


@pytest.mark.parametrize(
    "body",
    [
        "y = x.cuda()\nprint(x)",
        "x.add_(1)\ny = x.cuda()",
        "y = batch['a'].cuda()\nbatch['b'].mul_(2)",
        "if rows:\n    y = x.cuda()\nelse:\n    x.add_(1)",
    ],
)
def test_other_memory_and_other_paths_do_not_count(body: str) -> None:
    assert not moved(body)


def test_views_and_items_lie_where_the_whole_does_and_copies_do_not() -> None:
    facts = facts_of(f"{_HEAD}def go(x):\n    a = x[0]\n    b = x.clone()\n    return here(a, b, x)\n")
    here = call_at(facts, "here(a, b, x)")
    function = facts.tree.function_of(here)
    assert function is not None
    memory = Memory(function, function, facts)
    part, copy, whole = (memory.spots(item) for item in here.args)
    assert meet(part, whole)
    assert not meet(copy, whole)


def test_a_region_writes_through_a_view() -> None:
    facts = facts_of(
        f"{_HEAD}def go(x, n):\n    row = x[0]\n    for i in range(n):\n        row.add_(i)\n    return x\n"
    )
    loop = node_at(facts, "for i in range(n): row.add_(i)", ast.For)
    whole = [part for part in ast.walk(facts.tree.module) if isinstance(part, ast.Name) and part.id == "x"][-1]
    assert is_written_in(whole, loop, facts)


def test_the_first_use_that_is_not_known_to_only_read() -> None:
    facts = facts_of(f"{_HEAD}def go(x):\n    y = x.cuda()\n    print(x.shape, x.sum())\n    keep(x)\n    return y\n")
    call = call_at(facts, "x.cuda()")
    assert isinstance(call.func, ast.Attribute)
    found = unread(call.func.value, call, facts)
    assert found is not None
    assert facts.tree.statement_of(found).lineno == facts.tree.statement_of(call_at(facts, "keep(x)")).lineno


@pytest.mark.parametrize(
    ("body", "owned"),
    [
        ("net = nn.Linear(4, 4)", True),
        ("net = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()", True),
        ("other = nn.Linear(4, 4)\nnet = copy.deepcopy(other)", True),
        ("net = nn.Linear(4, 4)\nkept.append(net)", False),
        ("shared = nn.Linear(4, 4)\nnet = nn.Sequential(shared)", False),
        ("net = make()", False),
        ("net = nn.Linear(4, 4)\nweights = net.weight", False),
    ],
)
def test_a_module_is_owned_where_it_is_made_of_layers_that_nobody_else_has(body: str, *, owned: bool) -> None:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    facts = facts_of(f"{_HEAD}def go(kept, state):\n{lines}    net.load_state_dict(state)\n")
    call = call_at(facts, "net.load_state_dict(state)")
    assert isinstance(call.func, ast.Attribute)
    assert is_owned(call.func.value, facts) is owned
