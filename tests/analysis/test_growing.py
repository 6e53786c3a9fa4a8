"""Tensors and attributes that grow, the loops they grow in, and how many turns those take."""

from __future__ import annotations

import ast

import pytest
from of_text import call_at, facts_of

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.few_parts import goes_over_a_handful, need_not_be_many
from perflint.analysis.frequency.few_turns import is_now_and_then
from perflint.analysis.phases.turn_work import are_generated, encodes_items, runs_a_model
from perflint.analysis.values.growing import TORCH_JOINS, adds_the_same, growing_loop, grown_at, is_column, size_reads
from perflint.analysis.values.grown_attributes import grown_attributes
from perflint.analysis.values.pieces import are_elements, are_moved_over

_LOOP = """
import torch
from torch import nn

def go(loader, rows, net: nn.Linear):
    seen = torch.zeros(0, 4)
    for {header}:
        {before}
        seen = torch.cat([seen, {new}])
        {behind}
    return seen
"""


def _facts(*, header: str = "x in loader", before: str = "pass", new: str = "x", behind: str = "pass") -> FileFacts:
    return facts_of(_LOOP.format(header=header, before=before, new=new, behind=behind))


def _join_of(facts: FileFacts, new: str = "x") -> ast.Call:
    return call_at(facts, f"torch.cat([seen, {new}])")


def _loop(facts: FileFacts, new: str = "x") -> ast.For:
    loop = facts.loops(_join_of(facts, new))[0]
    assert isinstance(loop, ast.For)
    return loop


@pytest.mark.parametrize(
    ("new", "added"), [("x", ["x"]), ("x * 2, x", ["x * 2", "x"]), ("seen.mean()", None), ("seen", None)]
)
def test_a_name_is_joined_to_itself_and_to_others(new: str, added: list[str] | None) -> None:
    facts = _facts(new=new)
    grown = grown_at(_join_of(facts, new), facts)
    assert (None if grown is None else [facts.text(part) for part in grown.added]) == added


@pytest.mark.parametrize(
    ("before", "grows"), [("pass", True), ("seen = torch.zeros(0, 4)", False), ("seen = seen[1:]", False)]
)
def test_a_loop_that_binds_the_name_in_other_ways_does_not_only_grow_it(before: str, *, grows: bool) -> None:
    facts = _facts(before=before)
    grown = grown_at(_join_of(facts), facts)
    assert grown is not None
    assert (growing_loop(grown, facts) is not None) is grows


@pytest.mark.parametrize(("behind", "reads"), [("pass", 0), ("print(seen.shape)", 1), ("print(seen.mean())", None)])
def test_reads_of_the_size_are_told_from_reads_of_the_values(behind: str, reads: int | None) -> None:
    facts = _facts(behind=behind)
    grown = grown_at(_join_of(facts), facts)
    assert grown is not None
    found = size_reads(grown, _loop(facts), facts)
    assert (None if found is None else len(found)) == reads


def test_what_the_loop_does_not_change_fills_up_a_rest() -> None:
    facts = _facts(new="rows")
    grown = grown_at(_join_of(facts, "rows"), facts)
    assert grown is not None
    assert adds_the_same(grown, _loop(facts, "rows"), facts)


@pytest.mark.parametrize(
    ("header", "handful"), [("layer in layers", True), ("x in range(num_heads)", True), ("x in loader", False)]
)
def test_headers_name_what_there_is_a_handful_of(header: str, *, handful: bool) -> None:
    assert goes_over_a_handful(_loop(_facts(header=header))) is handful


@pytest.mark.parametrize(
    ("header", "few"),
    [("x in boxes", True), ("x in samples", False), ("x in range(9)", False), ("x in open(path).readlines()", False)],
)
def test_of_what_a_header_names_there_need_not_be_many(header: str, *, few: bool) -> None:
    facts = _facts(header=header)
    assert need_not_be_many(_join_of(facts), _loop(facts), facts) is few


def test_a_modulo_lets_few_turns_by() -> None:
    facts = facts_of(
        "def go(n):\n    for i in range(n):\n        if i % 100 == 0:\n            here(i)\n        there(i)\n"
    )
    assert is_now_and_then(call_at(facts, "here(i)"), facts)
    assert not is_now_and_then(call_at(facts, "there(i)"), facts)


@pytest.mark.parametrize(
    ("before", "runs", "encodes", "generates"),
    [
        ("y = net(x)", True, False, False),
        ("y = encoder.encode(x)", False, True, False),
        ("x = tts.synthesize(rows)", False, False, True),
        ("y = x + 1", False, False, False),
    ],
)
def test_a_turn_is_told_by_what_it_runs(before: str, *, runs: bool, encodes: bool, generates: bool) -> None:
    facts = _facts(header="x in rows", before=before)
    loop = _loop(facts)
    assert runs_a_model(loop, facts) is runs
    assert encodes_items(loop, facts) is encodes
    assert are_generated(_join_of(facts).args[0].elts[1:], loop, facts) is generates  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("header", "new", "cut"),
    [("i in range(n)", "rows[:, i::n]", True), ("i in range(n)", "rows[:, i]", False)],
)
def test_even_cuts_are_of_what_is_there_already(header: str, new: str, *, cut: bool) -> None:
    facts = _facts(header=header, new=new)
    grown = grown_at(_join_of(facts, new), facts)
    assert grown is not None
    assert are_moved_over(grown.added, _loop(facts, new)) is cut
    assert not are_elements(grown.added, _loop(facts, new))


def test_one_number_for_each_row_is_a_column() -> None:
    facts = facts_of("done.reshape(n, 1)\ndone.reshape(n, 4)\n")
    assert is_column(call_at(facts, "done.reshape(n, 1)"))
    assert not is_column(call_at(facts, "done.reshape(n, 4)"))


@pytest.mark.parametrize(("asks", "grows"), [("len(x)", True), ("self.seen.mean()", False)])
def test_the_state_of_a_metric_grows_until_it_is_reset(asks: str, *, grows: bool) -> None:
    facts = facts_of(
        "import torch\n\nclass Metric:\n    def reset(self):\n        self.seen = torch.tensor([])\n\n"
        f"    def update(self, x):\n        self.seen = torch.cat([self.seen, x])\n        print({asks})\n"
    )
    cls = next(part for part in ast.walk(facts.tree.module) if isinstance(part, ast.ClassDef))
    assert [item.name for item in grown_attributes(cls, facts, TORCH_JOINS)] == (["seen"] if grows else [])
