"""What part of a program a line belongs to, by what its loop computes; names only make it surer, or less sure."""

from __future__ import annotations

import ast

import pytest

from perflint.analysis.names.refs import Scope
from perflint.analysis.phases.phase import Phase, PhaseOf
from perflint.analysis.program import Program
from perflint.finding import Confidence
from perflint.ir.calls import callee_name
from perflint.ir.survey import survey
from perflint.rule_api import weighing
from perflint.rule_api.context import Context
from perflint.syntax.file import SourceFile
from perflint.syntax.parse import parse
from perflint.syntax.tree import Tree

_HEAD = "import time\nimport torch\nfrom torch.utils.data import DataLoader\n"
_STEP = "        loss = model(x).mean()\n        loss.backward()\n"


def phase(body: str, function: str = "go", line: str = "# here", path: str = "a.py") -> PhaseOf:
    text = _HEAD + body
    program = Program({path: survey(ast.parse(text), text.splitlines())})
    number = next(at for at, item in enumerate(text.splitlines(), 1) if item.endswith(line))
    facts = program.summaries[path].functions[function]
    column = len(text.splitlines()[number - 1]) - len(text.splitlines()[number - 1].lstrip())
    return program.phase(Scope(path, function), facts.context_at(number, column))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"def go(model, loader, opt):\n    for x in loader:\n{_STEP}        opt.step()  # here\n", Phase.TRAIN),
        ("@torch.no_grad()\ndef go(model, loader):\n    for x in loader:\n        model(x)  # here\n", Phase.EVALUATE),
        (
            "def go(model, loader):\n    for x in loader:\n        y = model.generate(x)  # here\n        print(y)\n",
            Phase.GENERATE,
        ),
        (
            (
                "def go(model, x):\n    t = time.time()\n    for _ in range(100):\n        model(x).sum().backward()"
                "  # here\n    return time.time() - t\n"
            ),
            Phase.BENCHMARK,
        ),
        ("def go(model, path):\n    torch.save(model, path)  # here\n", Phase.CHECKPOINT),
        ("def go(model):\n    return model.cuda()  # here\n", Phase.SET_UP),
    ],
)
def test_phase_by_facts(body: str, expected: Phase) -> None:
    assert phase(body).phase is expected


def test_what_a_training_step_calls_is_no_benchmark_for_its_clock() -> None:
    body = (
        "def go(model, loader, opt):\n    for x in loader:\n        parts(model, x)\n        opt.step()\n"
        "def parts(model, x):\n    t = time.time()\n    for at in range(0, 100, 10):\n"
        "        model(x[at : at + 10]).sum().backward()  # here\n    return time.time() - t\n"
    )
    assert phase(body, "parts").phase is Phase.TRAIN


def test_a_name_shifts_how_sure_it_is_and_decides_nothing() -> None:
    body = "def {}(model, loader):\n    for x in loader:\n        model(x)  # here\n"
    plain, agreed, other = (phase(body.format(name), name) for name in ("go", "evaluate", "train"))
    assert {plain.phase, agreed.phase, other.phase} == {Phase.EVALUATE}
    assert (plain.confidence, agreed.confidence, other.confidence) == (
        Confidence.MEDIUM,
        Confidence.HIGH,
        Confidence.LOW,
    )


def test_reads_that_end_a_step() -> None:
    head = "def go(model, loader):\n    with torch.no_grad():\n        for x in loader:\n"
    body = f"{head}            y = model(x)  # here\n"
    assert not phase(body).ends_in_reads
    assert phase(f"{body}            print(y.cpu())\n").ends_in_reads
    assert phase(f"{body}            note(y)\ndef note(y):\n    return y.tolist()\n").ends_in_reads


_PASS = """
def mask_of(x, device):
    return torch.tensor([0.0, 1.0, 2.0]).to(device)
@torch.no_grad()
def evaluate(model, loader, device):
    for x in loader:
        print(model(x.to(device, non_blocking=True), mask_of(x, device)).cpu())
"""
_TRAINING = """
def train(model, loader, device, opt):
    for x in loader:
        model(x.to(device, non_blocking=True), mask_of(x, device)).mean().backward()
        opt.step()
"""


@pytest.mark.parametrize(("body", "is_minor"), [(_PASS, True), (_PASS + _TRAINING, False)])
def test_copies_in_steps_that_end_by_reading_are_minor_where_nothing_is_trained(body: str, *, is_minor: bool) -> None:
    text = _HEAD + body
    source = SourceFile("a.py", text)
    tree = Tree(source, parse(source))
    context = Context(tree, Program({"a.py": survey(tree.module, source.lines)}))
    moved = next(node for node in ast.walk(tree.module) if isinstance(node, ast.Call) and callee_name(node) == "to")
    assert weighing.is_minor(moved, context) is is_minor
