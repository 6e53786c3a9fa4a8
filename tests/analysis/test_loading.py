"""Data loaders: options through dicts, what a sample costs, and whether a loader is gone through again and again."""

from __future__ import annotations

import ast

import pytest
from of_text import facts_of

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.loading.loaders import option, purpose, workers
from perflint.analysis.loading.passes import is_repeated
from perflint.analysis.loading.sample_cost import dataset_work

_HEAD = "import torch\nfrom PIL import Image\nfrom torch.utils.data import DataLoader, Dataset, Subset\n\n"
_STEP = "model(batch).mean().backward()\n            optimizer.step()\n"


def loader_in(facts: FileFacts) -> ast.Call:
    return next(
        part
        for part in ast.walk(facts.tree.module)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "DataLoader"
    )


def test_options_are_seen_through_dicts() -> None:
    body = "def go(data, more):\n    options = dict(num_workers=4)\n    options['pin_memory'] = True\n"
    facts = facts_of(f"{_HEAD}{body}    return DataLoader(data, 8, **options)\n")
    call = loader_in(facts)
    assert workers(call, facts) == "some"
    pinned = option(call, "pin_memory", facts)
    assert isinstance(pinned, ast.Constant)
    assert pinned.value is True
    hidden = facts_of(f"{_HEAD}{body}    options.update(more)\n    return DataLoader(data, 8, **options)\n")
    assert option(loader_in(hidden), "pin_memory", hidden) is None


@pytest.mark.parametrize(
    ("item", "work"),
    [
        ("return Image.open(self.paths[i]), self.augment(i)", "work"),
        ("return self.rows[i]", "memory"),
        ("return self.a(i), self.b(i), self.c(i), self.d(i), self.e(i)", "unknown"),
    ],
)
def test_what_a_sample_costs_is_told_by_what_gives_it(item: str, work: str) -> None:
    data = f"class Data(Dataset):\n    def __getitem__(self, i):\n        {item}\n\n"
    facts = facts_of(f"{_HEAD}{data}def go():\n    return DataLoader(Subset(Data(), [1]))\n")
    assert dataset_work(loader_in(facts), facts) == work


@pytest.mark.parametrize(
    ("around", "repeated"), [("for epoch in range(epochs):", True), ("if epochs:", False)], ids=["epochs", "once"]
)
def test_a_loader_is_gone_through_again_where_a_loop_around_starts_it(around: str, *, repeated: bool) -> None:
    body = f"def train(data, model, optimizer, epochs):\n    batches = DataLoader(data)\n    {around}\n"
    facts = facts_of(f"{_HEAD}{body}        for batch in batches:\n            {_STEP}")
    assert is_repeated(loader_in(facts), facts) is repeated


def test_the_nearest_name_says_what_a_loader_is_for() -> None:
    facts = facts_of(f"{_HEAD}def train(data):\n    val_loader = DataLoader(data)\n    return val_loader\n")
    assert purpose(loader_in(facts), facts) == "eval"
    facts = facts_of(f"{_HEAD}def train(data):\n    batches = DataLoader(data)\n    return batches\n")
    assert purpose(loader_in(facts), facts) == "train"
