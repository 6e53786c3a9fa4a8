"""Which host data an expression copies to a device without a move in its text."""

from __future__ import annotations

import ast

import pytest
from of_text import call_at, facts_of

from perflint.analysis.transfers.made_before import made_before
from perflint.analysis.values.implicit_copies import copied_data, written_element


@pytest.mark.parametrize(
    ("text", "dotted", "wanted"),
    [
        ("tensor([w, h], device=d)", "torch.tensor", "[w, h]"),
        ("tensor(data=rows, device=d)", "torch.tensor", "rows"),
        ("as_tensor(rows, dtype=t, device=d)", "torch.as_tensor", "rows"),
        ("x.new_tensor(rows)", "", "rows"),
        ("tensor([w, h])", "torch.tensor", None),
        ("scalar_tensor(w, device=d)", "torch.scalar_tensor", None),
        ("full((2,), w, device=d)", "torch.full", None),
        ("tensor(rows, **options)", "torch.tensor", None),
        ("x.new_zeros(2)", "", None),
    ],
)
def test_data_that_is_copied(text: str, dotted: str, wanted: str | None) -> None:
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    found = copied_data(call, dotted)
    assert (None if found is None else ast.unparse(found)) == wanted


@pytest.mark.parametrize(
    ("text", "is_element"),
    [
        ("x[i, 0] = n", True),
        ("x[i] = n", True),
        ("x[:, 0] = n", False),
        ("x[..., 0] = n", False),
        ("x[i, None] = n", False),
        ("x[[0, 1]] = n", False),
        ("x[y > 0] = n", False),
        ("x[0] = z[0] = n", False),
        ("x = n", False),
    ],
)
def test_places_of_one_element(text: str, is_element: bool) -> None:
    statement = ast.parse(text).body[0]
    assert isinstance(statement, ast.Assign)
    assert (written_element(statement) is not None) == is_element


_FILTERS = """
import torch
from typing import NamedTuple

class Filters(NamedTuple):
    low: torch.Tensor
    high: torch.Tensor

    @classmethod
    def of(cls, taps):
        return cls(
            torch.tensor(taps), high=torch.tensor([1.0]))

def moved(x, like):
    return x.to(like.device)

class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        made = Filters.of([0.5])
        ones = torch.ones(3)
        a = made.low.to(x.device)
        b = made.high.to(x.device)
        c = ones.float().to(x.device)
        return x * a * b * c * moved(
            torch.arange(3), x)
"""


@pytest.mark.parametrize(
    ("moved", "line"),
    [("made.low", 12), ("made.high", 12), ("ones.float()", 20), ("x", 25)],
)
def test_a_move_knows_where_on_the_host_the_tensor_was_made(moved: str, line: int) -> None:
    facts = facts_of(_FILTERS)
    call = call_at(facts, f"{moved}.to({'like' if moved == 'x' else 'x'}.device)")
    assert isinstance(call.func, ast.Attribute)
    assert [(hop.line, hop.code) for hop in made_before(call.func.value, "TPL101", facts)] == [(line, "TPL101")]
