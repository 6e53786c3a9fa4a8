"""Calls of torch that name their first arguments are read as those that do not."""

from __future__ import annotations

import ast

import pytest

from perflint.syntax.file import SourceFile
from perflint.syntax.parse import parse

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import cat as join, optim\n"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("torch.cat(tensors=rows, dim=1)", "torch.cat(rows, dim=1)"),
        ("join(tensors=rows)", "join(rows)"),
        ("F.cross_entropy(input=x, target=y, reduction='sum')", "F.cross_entropy(x, y, reduction='sum')"),
        ("torch.where(condition=mask, input=x, other=y)", "torch.where(mask, x, y)"),
        ("optim.Adam(params=weights, lr=0.1)", "optim.Adam(weights, lr=0.1)"),
        ("batch.to(device=device, non_blocking=True)", "batch.to(device, non_blocking=True)"),
        # What is not first in the text, or not of torch, or no parameter that comes first, stays as it is.
        ("torch.cat(dim=1, tensors=rows)", "torch.cat(dim=1, tensors=rows)"),
        ("model(input=x)", "model(input=x)"),
        ("torch.zeros(4, dtype=d)", "torch.zeros(4, dtype=d)"),
        ("batch.to(dtype=d)", "batch.to(dtype=d)"),
        ("torch.tensor(device=d, data=x)", "torch.tensor(device=d, data=x)"),
    ],
)
def test_first_arguments_are_read_by_place(written: str, read: str) -> None:
    module = parse(SourceFile("a.py", HEAD + written + "\n"))
    assert ast.unparse(module.body[-1]) == read
    statement = module.body[-1]
    assert isinstance(statement, ast.Expr)
    assert statement.value.col_offset == 0
    assert statement.value.end_col_offset == len(written)


def test_what_is_called_torch_is_asked_of_the_imports() -> None:
    module = parse(SourceFile("a.py", "import mytorch as torch\ntorch.cat(tensors=rows)\n"))
    assert ast.unparse(module.body[-1]) == "torch.cat(tensors=rows)"
