"""What names stand for by how they are used, whatever they are."""

from __future__ import annotations

import ast

import pytest

from perflint.analysis.names.used_as import optimizers_of, sources_of_batches
from perflint.ir.summary import FunctionFacts
from perflint.ir.survey import survey


def facts_of(body: str, parameters: str = "a, b, c, d") -> FunctionFacts:
    lines = [f"def run({parameters}):", *(f"    {line}" for line in body.strip("\n").split("\n"))]
    return survey(ast.parse("\n".join(lines)), lines).functions["run"]


@pytest.mark.parametrize(
    "body",
    [
        "for x, y in b:\n    a(x.to(d)).sub(y.to(d)).mean().backward()",
        "for i, x in enumerate(b):\n    x = x.cuda()\n    print(a(x))",
        "for x in b:\n    parts = {k: v.to(d) for k, v in x.items()}\n    a(**parts)",
        "for x in b:\n    c.add(a.generate(x['ids'].to(d)))",
        "for x in b:\n    loss = a(x)\n    loss.backward()",
    ],
)
def test_batches_come_from_what_is_moved_and_run(body: str) -> None:
    assert sources_of_batches(facts_of(body)) == {"b"}


@pytest.mark.parametrize(
    "body",
    [
        "for x in b:\n    x.backward()",  # losses
        "for x in b:\n    x.to(d)\n    x(a).backward()",  # models
        "for x in b:\n    x.step()\n    a(x).backward()",  # optimizers
        "for x in b:\n    c.append(x.to(d))",  # tensors that are kept
        "for x in b:\n    print(a(x))",
        "for x in b:\n    inputs = c(x)\n    a(inputs.to(d))",  # texts
        "for x in b:\n    model = a(x)\n    for y in c:\n        model(y).backward()",  # settings
        "for x in b:\n    a(x.unsqueeze(0).to(d))",  # samples
        "for x, y in zip(b, c):\n    a(x.to(d))",
    ],
)
def test_whatever_else_is_gone_through_gives_no_batches(body: str) -> None:
    assert "b" not in sources_of_batches(facts_of(body))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("b.zero_grad()\na(d).backward()\nb.step()\nc.step()", {"b"}),
        ("a(d).backward()\nb.step()", {"b"}),
        ("a(d).backward()\nb.step()\nc.step()", set()),  # one of the two is a scheduler
        ("a(d).backward()\nb.step(d)", set()),
        ("b.step()", set()),
        ("a(d).backward()\nb.step()\nprint(b.get_last_lr())", set()),
    ],
)
def test_optimizers_set_gradients_to_zero_or_step_alone(body: str, found: set[str]) -> None:
    assert optimizers_of(facts_of(body)) == found
