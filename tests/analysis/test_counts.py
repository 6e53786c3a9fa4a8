"""What is counted on the device, and which items and entries of results are used."""

from __future__ import annotations

import ast

import pytest
from of_text import call_at, facts_of, node_at

from perflint.analysis.aliases.entries import only_rebinds_entries
from perflint.analysis.aliases.kept_objects import is_kept_object
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.item_reads import ItemReads
from perflint.analysis.values.lists_of_arrays import are_small, holds_arrays, is_little
from perflint.analysis.waits.counts import Count, counted_at
from perflint.analysis.waits.numbers import numbers_of
from perflint.finding import Confidence

_HEAD = """
import numpy as np
import torch

def go(n, rows):
    x = torch.rand(8, 8, device="cuda")
    mask = x > 0
    y = torch.rand(8, device="cuda")
"""


def _facts(body: str) -> FileFacts:
    return facts_of(_HEAD + "    " + body.replace("\n", "\n    ") + "\n")


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("x.nonzero()", Count.OF_RESULT),
        ("torch.where(mask)", Count.OF_RESULT),
        ("torch.where(mask, x, 0)", None),
        ("torch.linalg.inv(x)", Count.OF_ERRORS),
        ("torch.nn.functional.one_hot(x.long())", Count.OF_RESULT),
        ("torch.nn.functional.one_hot(x.long(), 4)", None),
        ("torch.repeat_interleave(x, y.long(), output_size=8)", None),
        ("x.sum()", None),
    ],
)
def test_operations_count_on_the_device(expression: str, what: Count | None) -> None:
    facts = _facts(f"here({expression})")
    [value] = call_at(facts, f"here({expression})").args
    assert isinstance(value, ast.Call)
    counted = counted_at(value, facts)
    assert (None if counted is None else counted.what) is what


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("z = x[mask]", Count.OF_RESULT),
        ("x[mask] = x[mask] * 2", Count.OF_RESULT),
        ("x[mask] = y", Count.OF_WRITTEN),
        ("x[mask] += y", Count.OF_RESULT),
        ("x[mask] = 0", None),
    ],
)
def test_masks_count_what_they_select(statement: str, what: Count | None) -> None:
    facts = _facts(statement)
    written = "z" not in statement
    selections = [part for part in ast.walk(facts.tree.module) if isinstance(part, ast.Subscript)]
    first = [part for part in selections if isinstance(part.ctx, ast.Store)] if written else selections
    counted = counted_at(first[0], facts)
    expected = Count.OF_WRITTEN if statement == "x[mask] = x[mask] * 2" else what
    assert (None if counted is None else counted.what) is expected


def test_positions_that_select_twice_are_counted_once() -> None:
    facts = _facts("at = mask.nonzero()\na = x[at]\nb = y[at]")
    assert counted_at(call_at(facts, "mask.nonzero()"), facts) is None
    facts = _facts("at = mask.nonzero()\na = x[at]")
    assert counted_at(call_at(facts, "mask.nonzero()"), facts) is not None


@pytest.mark.parametrize(
    ("body", "keys"),
    [
        ("_, cache = model.run_with_cache(x)\nreturn cache['a']", ["'a'"]),
        ("_, cache = model.run_with_cache(x)\nreturn cache['a'], cache['b']", ["'a'", "'b'"]),
        ("_, cache = model.run_with_cache(x)\nreturn cache", []),
        ("_, cache = model.run_with_cache(x)\nfor key in n:\n    print(cache[key])", []),
        ("return model.run_with_cache(x)[1]['a']", ["'a'"]),
    ],
)
def test_items_of_a_cache_are_read_where_every_use_is_seen(body: str, keys: list[str]) -> None:
    facts = _facts(body)
    assert ItemReads(call_at(facts, "model.run_with_cache(x)"), facts).of_cache() == keys


@pytest.mark.parametrize(
    ("body", "layers"),
    [
        ("out = model(x, output_hidden_states=True)\nreturn out.hidden_states[-1]", ["-1"]),
        ("out = model(x, output_hidden_states=True)\nstates = out.hidden_states\nreturn states[3]", ["3"]),
        ("out = model(x, output_hidden_states=True)\nreturn out.logits", []),
        ("out = model(x, output_hidden_states=True)\nkeep(out)", None),
    ],
)
def test_layers_of_an_output_are_read_through_names(body: str, layers: list[str] | None) -> None:
    facts = _facts(body)
    assert ItemReads(call_at(facts, "model(x, output_hidden_states=True)"), facts).of_output() == layers


@pytest.mark.parametrize(
    ("body", "holds"),
    [
        ("here([np.zeros(4), np.ones(4)])", True),
        ("here([np.zeros(4) for _ in rows])", True),
        ("found = []\nfor row in rows:\n    found.append(np.zeros(4))\nhere(found)", True),
        ("here([1, 2])", False),
        ("here([x.sum(), x.mean()])", False),
        ("here([np.array(1.0)])", False),
        ("here(rows)", False),
    ],
)
def test_lists_hold_arrays_of_at_least_one_dimension(body: str, *, holds: bool) -> None:
    facts = _facts(body)
    call = next(
        part for part in ast.walk(facts.tree.module) if isinstance(part, ast.Call) and facts.text(part.func) == "here"
    )
    assert holds_arrays(call.args[0], facts) is (Confidence.HIGH if holds else None)


def test_written_arrays_are_small_and_one_array_is_little() -> None:
    facts = _facts("a([np.zeros(4)])\nb([np.zeros((64, 64))])")
    small, large = call_at(facts, "a([np.zeros(4)])"), call_at(facts, "b([np.zeros((64, 64))])")
    assert are_small(small.args[0], small, facts)
    assert not are_small(large.args[0], large, facts)
    assert is_little(small.args[0], small, facts)


@pytest.mark.parametrize(
    ("body", "rebinds"),
    [
        ("copied = keep(n)\ncopied['a'] = y", True),
        ("copied = keep(n)\ncopied.pop('a')", True),
        ("copied = keep(n)\ncopied['a'] += y", False),
        ("copied = keep(n)\ncopied['b'] = y\ncopied['a'].mul_(2)", False),
        ("copied = keep(n)\ncopied['b'] = y\nfor v in copied.values():\n    pass", False),
        ("copied = keep(n)", False),
    ],
)
def test_entries_are_replaced_and_never_written_in_place(body: str, *, rebinds: bool) -> None:
    facts = _facts(body)
    assert only_rebinds_entries("copied", call_at(facts, "keep(n)"), facts) is rebinds


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("net = Net()\nnet(x)", False),
        ("nets = [Net()]", True),
        ("net = Net()\nrows.append(net)", True),
        ("rows['net'] = Net()", True),
        ("return Net()", True),
    ],
)
def test_objects_are_collected_or_stored(body: str, *, kept: bool) -> None:
    facts = _facts(body)
    assert is_kept_object(node_at(facts, "Net()", ast.Call), facts) is kept


@pytest.mark.parametrize(("call", "reads"), [("this.repeat(n)", False), ("x.repeat(n)", True)])
def test_a_method_of_the_object_around_is_none_of_a_tensor(call: str, *, reads: bool) -> None:
    facts = facts_of(f"class Step:\n    def run(this, x, n):\n        return {call}\n")
    assert (list(numbers_of(call_at(facts, call), facts)) != []) is reads
