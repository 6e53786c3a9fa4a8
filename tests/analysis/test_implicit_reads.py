"""Which arguments of a call become Python numbers."""

from __future__ import annotations

import ast

import pytest

from perflint.analysis.values.implicit_reads import numbers_in


def _numbers(text: str, dotted: str = "") -> list[str]:
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    return [ast.unparse(item) for item in numbers_in(call, dotted)]


@pytest.mark.parametrize(
    ("text", "dotted", "wanted"),
    [
        ("zeros(n, m, device=d)", "torch.zeros", ["n", "m"]),
        ("zeros((2, n), dtype=t)", "torch.zeros", ["n"]),
        ("zeros(size=(n, m))", "torch.zeros", ["n", "m"]),
        ("arange(0, n)", "torch.arange", ["n"]),
        ("full((n,), v)", "torch.full", ["n", "v"]),
        ("topk(x, k, d)", "torch.topk", ["k"]),
        ("one_hot(x, num_classes=k)", "torch.nn.functional.one_hot", ["k"]),
        ("tensor([a, b])", "torch.tensor", ["a", "b"]),
        ("x.topk(k, d)", "", ["k"]),
        ("x.narrow(1, a, b)", "", ["a", "b"]),
        ("x.split([a, 3])", "", ["a"]),
        ("x.add(y, alpha=a)", "", ["a"]),
        ("x.view(n, m)", "", ["n", "m"]),
    ],
)
def test_arguments_that_become_numbers(text: str, dotted: str, wanted: list[str]) -> None:
    assert _numbers(text, dotted) == wanted


@pytest.mark.parametrize(
    ("text", "dotted"),
    [("zeros(n)", "numpy.zeros"), ("tensor(a)", "torch.tensor"), ("x.add(y)", ""), ("x.pow(n)", ""), ("x.sum(n)", "")],
)
def test_arguments_that_stay_tensors(text: str, dotted: str) -> None:
    assert _numbers(text, dotted) == []
