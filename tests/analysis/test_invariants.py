"""What stays the same from step to step and from turn to turn, and what the numbers of a value depend on."""

from __future__ import annotations

import pytest
from of_text import call_at, facts_of

from perflint.analysis.invariants import in_loops
from perflint.analysis.invariants.number_sources import Source, goes_back, is_kept, origin_of
from perflint.analysis.invariants.step_constants import is_step_constant

_HEAD = "import torch\nimport numpy as np\nimport math\n"
_NET = """
class Net(torch.nn.Module):
    def __init__(self, width, scale=2.0):
        super().__init__()
        self.width = width
        self.scale = scale
        self.seen = 0

    def forward(self, x, n):
        self.seen += 1
        return here({})
"""


@pytest.mark.parametrize(
    ("value", "fixed"),
    [
        ("0.5", True),
        ("[1, 2, 3]", True),
        ("self.width ** -0.5", True),
        ("math.sqrt(self.width)", True),
        ("self.seen", False),
        ("n", False),
        ("x.shape[0]", False),
    ],
)
def test_what_only_the_constructor_binds_is_the_same_on_every_step(value: str, *, fixed: bool) -> None:
    facts = facts_of(_HEAD + _NET.format(value))
    assert is_step_constant(call_at(facts, f"here({value})").args[0], facts) is fixed


@pytest.mark.parametrize(
    ("made", "source"),
    [
        ("torch.tensor([0.1, 0.9])", Source.CONSTANT),
        ("torch.arange(len(rows))", Source.SIZES),
        ("np.array(rows)", Source.DATA),
        ("np.sort(loss.cuda().cpu().numpy())", Source.DEVICE),
    ],
)
def test_of_the_parts_of_a_value_the_most_changing_counts(made: str, source: Source) -> None:
    facts = facts_of(f"{_HEAD}def go(rows, loss):\n    value = {made}\n    return here(value)\n")
    found = origin_of(call_at(facts, "here(value)").args[0], facts)
    assert found.source is source


def test_what_is_fetched_and_sent_back_goes_back() -> None:
    body = "def go(x):\n    y = x.cuda()\n    z = np.sort(y.cpu().numpy())\n    return torch.tensor(z, device='cuda')\n"
    text = _HEAD + body
    facts = facts_of(text)
    assert goes_back(call_at(facts, "y.cpu()"), facts)
    facts = facts_of(text.replace("return torch.tensor(z, device='cuda')", "return z"))
    assert not goes_back(call_at(facts, "y.cpu()"), facts)


def test_an_attribute_is_kept_that_only_the_constructor_binds() -> None:
    facts = facts_of(_HEAD + _NET.format("self.width, self.seen"))
    width, seen = call_at(facts, "here(self.width, self.seen)").args
    assert is_kept(width, facts)
    assert not is_kept(seen, facts)


def test_the_same_on_every_turn_is_seen_through_names() -> None:
    turn = "        size = n * 2\n        total = row + size\n        here(size, total)\n"
    body = f"def go(rows, n):\n    for row in rows:\n{turn}"
    facts = facts_of(_HEAD + body)
    here = call_at(facts, "here(size, total)")
    (loop,) = facts.loops(here)
    size, total = here.args
    assert in_loops.is_fixed(size, loop, facts)
    assert not in_loops.is_fixed(total, loop, facts)
