"""The device's queue across calls: what functions do to it, and what their callers leave in it."""

from __future__ import annotations

import ast
import itertools

import pytest

from perflint.analysis.device_queue.transfer import FULL
from perflint.analysis.names.refs import Scope
from perflint.analysis.program import Program
from perflint.ir.survey import survey

_HEAD = "import torch\nfrom torch.utils.data import DataLoader\n"


def program_of(body: str) -> Program:
    text = _HEAD + body
    return Program({"a.py": survey(ast.parse(text), text.splitlines())})


def change(body: str) -> tuple[int | None, int | None]:
    """Launches of `f` on ways without a wait, and since the last wait on the others."""
    program = program_of(f"{body}\ndef calls_it(a, b, c):\n    f(a, b, c)\n")
    found = program.queue_change(Scope("a.py", "calls_it"), 0)
    return found.through, found.fresh


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("def f(a, b, c): pass", (0, None)),
        ("def f(a, b, c): return a.item()", (None, 0)),
        ("def f(a, b, c): return a.cpu().numpy()", (None, 0)),
        ("def f(a, b, c): torch.cuda.synchronize()", (None, 0)),
        ("def f(a, b, c): return a.numpy()", (0, None)),
        ("def f(a, b, c): a.backward()", (FULL, None)),
        ("def f(a, b, c):\n  a.backward()\n  return a.item()", (None, 0)),
        ("def f(a, b, c):\n  x = a.item()\n  a.backward()", (None, FULL)),
        ("def f(a, b, c): return model(a).item()", (None, 0)),
        ("def f(a, b, c): return (model(a) == b).sum().cpu()", (None, 0)),
        ("def f(a, b, c): return model(a.item())", (None, FULL)),
        # What is made on the host is no work of the device.
        ("def f(a, b, c): return torch.from_numpy(a).float().to(b)", (0, None)),
        ("def f(a, b, c): return torch.tensor(a, device=b).float().to(b)", (1, None)),
        ("def f(a, b, c): return torch.tensor(a, **b).float().to(b)", (1, None)),
        ("def f(a, b, c):\n  with torch.no_grad():\n    return a", (0, None)),
        # Decompositions are checked on the host, sizes are counted; of repeats the host may know the sum.
        ("def f(a, b, c): return torch.linalg.eigh(a)", (None, 0)),
        ("def f(a, b, c): return torch.unique(a)", (None, 0)),
        ("def f(a, b, c): return torch.repeat_interleave(a, 2)", (1, None)),
        # A loss is a kernel or two, a layer is work.
        ("loss = torch.nn.MSELoss()\ndef f(a, b, c): return loss(a, b)", (2, None)),
        ("layer = torch.nn.Linear(8, 8)\ndef f(a, b, c): return layer(a)", (FULL, None)),
        # How many boxes are kept, the device has to tell.
        ("def f(a, b, c): gpu_nms(a, b, c)", (None, 0)),
        ("def f(a, b, c): gpu_nms(a, b, c)\ndef gpu_nms(a, b, c): pass", (0, None)),
        # Branches, one of them taken or both; early returns; rare code; loops.
        ("def f(a, b, c):\n  if b: g(a.item())\ndef g(a): pass", (0, 0)),
        ("def f(a, b, c):\n  if b: g(a.item())\n  else: g(a.tolist())\ndef g(a): pass", (None, 0)),
        ("def f(a, b, c):\n  if b: return g(a.item())\n  return g(a.tolist())\ndef g(a): pass", (None, 0)),
        ("def f(a, b, c):\n  if b % 100 == 0: g(a.item())\ndef g(a): pass", (1, None)),
        ("def f(a, b, c):\n  for x in a: g(x.item())\ndef g(a): pass", (None, 0)),
        ("def f(a, b, c):\n  for x in a:\n    torch.fft.fft(b)", (FULL, None)),
        ("def f(a, b, c):\n  try: g(a.item())\n  except E: g(b)\ndef g(a): pass", (None, 0)),
        # Through calls.
        ("def f(a, b, c): g(a)\ndef g(a): h(a)\ndef h(a): return a.item()", (None, 0)),
        ("def f(a, b, c):\n  g(a)\n  torch.fft.fft(b)\ndef g(a): return a.item()", (None, 1)),
        ("def f(a, b, c):\n  if b: f(a, b, c)\n  return a.item()", (None, 0)),
        ("def f(a, b, c): g(a)\ndef g(a): yield a.item()", (0, None)),
    ],
)
def test_what_a_call_does(body: str, expected: tuple[int | None, int | None]) -> None:
    assert change(body) == expected


def test_a_method_that_is_there_to_be_overridden_does_nothing() -> None:
    body = """
class Decoder:
    def decode(self, a):
        raise NotImplementedError
class Greedy(Decoder):
    def decode(self, a):
        return a.cpu()
class Beam(Decoder):
    def decode(self, a):
        return a.tolist()
def f(a, b, c):
    decoder: Decoder = a
    decoder.decode(b)
"""
    assert change(body) == (None, 0)


_LOOP = """
def fit(model, dataset, optimizer):
    loader = DataLoader(dataset)
    for batch in loader:
        {}
def step(model, batch, optimizer):
    inner(batch)
    loss = model(batch)
    loss.backward()
    optimizer.step()
    {}
def inner(batch): pass
"""


@pytest.mark.parametrize(
    ("loop", "end", "launched"),
    [
        ("step(model, batch, optimizer)", "pass", FULL),
        ("step(model, batch, optimizer)", "return loss.item()", 0),
        ("step(model, batch, optimizer); print(batch.sum().item())", "pass", 0),
        ("x = step(model, batch, optimizer); y = model(batch)", "return loss.item()", FULL),
        ("batch.sum().item(); torch.fft.fft(batch); step(model, batch, optimizer)", "pass", 1),
    ],
)
def test_what_callers_leave(loop: str, end: str, launched: int) -> None:
    program = program_of(_LOOP.format(loop, end))
    for name in ("step", "inner"):
        assert program.queue_at_start(Scope("a.py", name)).entry.launched == launched


def test_one_call_that_leaves_work_is_enough() -> None:
    body = _LOOP.format("step(model, batch, optimizer)", "return loss.item()")
    other = _LOOP.format("step(model, batch, optimizer); model(batch)", "pass").split("def step")[0]
    program = program_of(body + other.replace("def fit", "def fit_otherwise"))
    assert program.queue_at_start(Scope("a.py", "inner")).entry.launched == FULL


def test_what_a_container_runs_before_is_queued() -> None:
    body = """
class Inner(torch.nn.Module):
    def forward(self, x):
        return x * 2
def fit(loader, optimizer):
    model = {}
    for batch in loader:
        batch.sum().item()
        model(batch).sum().backward()
        optimizer.step()
        print(batch.max().item())
"""
    at_once = program_of(body.format("Inner()")).queue_at_start(Scope("a.py", "Inner.forward")).entry
    assert (at_once.launched, [place.line for place in at_once.emptied_by]) == (0, [10])
    behind = program_of(body.format("torch.nn.Sequential(torch.nn.Linear(8, 8), Inner())"))
    assert behind.queue_at_start(Scope("a.py", "Inner.forward")).entry.launched == FULL


def test_the_order_of_questions_does_not_matter() -> None:
    body = """
def fit(model, dataset):
    for batch in DataLoader(dataset):
        a(batch)
        batch.mean().backward()
def a(x):
    if x: b(x)
    return x.item()
def b(x):
    c(x)
def c(x):
    a(x)
    torch.fft.fft(x)
"""
    names = ("a", "b", "c", "fit")
    answers = set()
    for order in itertools.permutations(names):
        program = program_of(body)
        found = {
            name: (program.queue_at_start(Scope("a.py", name)), program.queue_change(Scope("a.py", "fit"), 1))
            for name in order
        }
        answers.add(tuple(found[name] for name in names))
    assert len(answers) == 1


@pytest.mark.parametrize(
    ("imports", "expected"),
    [("import numpy as np", (0, None)), ("import numpy as np\nimport torch", (1, None)), ("", (1, None))],
)
def test_a_file_of_arrays_launches_nothing(imports: str, expected: tuple[int | None, int | None]) -> None:
    texts = {
        "arrays.py": f"{imports}\ndef blend(a, b):\n    return a * 3 + b\n",
        "a.py": _HEAD + "from arrays import blend\ndef calls_it(a, b):\n    blend(a, b)\n",
    }
    program = Program({path: survey(ast.parse(text), text.splitlines()) for path, text in texts.items()})
    found = program.queue_change(Scope("a.py", "calls_it"), 0)
    assert (found.through, found.fresh) == expected
