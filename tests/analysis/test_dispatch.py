"""Any number of classes or functions in a dispatch: all of them run, and each costs as much as the one before."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from perflint.analysis.names.refs import Scope
from perflint.analysis.names.resolver import Resolver
from perflint.analysis.program import Program
from perflint.ir.survey import survey

_HEAD = "from torch import nn\nfrom torch.utils.data import DataLoader\n\n"
_TRAIN = """
def train(model, loader: DataLoader, optimizer):
    for images in loader:
        model.run(images).backward()
        optimizer.step()

def main(kind, loader, optimizer):
"""


def _classes(count: int) -> str:
    return "".join(f"class Net{i}:\n    def run(self, x):\n        return x + {i}\n\n" for i in range(count))


def _branches(count: int, depth: int, does: str) -> str:
    margin = "    " * depth
    return "".join(
        f"{margin}{'el' if i else ''}if kind == 'k{i}':\n{margin}    {does.format(i=i)}\n" for i in range(count)
    )


def _by_if(count: int) -> str:
    return _TRAIN + _branches(count, 1, "model = Net{i}()") + "    train(model, loader, optimizer)\n"


def _by_match(count: int) -> str:
    cases = "".join(f"        case 'k{i}':\n            model = Net{i}()\n" for i in range(count))
    return f"{_TRAIN}    match kind:\n{cases}    train(model, loader, optimizer)\n"


def _by_factory(count: int) -> str:
    made = f"\ndef made(kind):\n{_branches(count, 1, 'return Net{i}()')}"
    return made + _TRAIN + "    train(made(kind), loader, optimizer)\n"


def _by_table(count: int) -> str:
    entries = ", ".join(f"'k{i}': Net{i}" for i in range(count))
    return f"\nNETS = {{{entries}}}\n{_TRAIN}    train(NETS[kind](), loader, optimizer)\n"


def _by_registry(count: int) -> str:
    entries = "".join(f"NETS['k{i}'] = Net{i}\n" for i in range(count))
    return f"\nNETS = {{}}\n{entries}{_TRAIN}    train(NETS[kind](), loader, optimizer)\n"


def _by_attribute(count: int) -> str:
    made = _branches(count, 2, "self.model = Net{i}()")
    return (
        f"\nclass Trainer:\n    def __init__(self, kind):\n{made}"
        "    def fit(self, loader: DataLoader, optimizer):\n"
        "        for images in loader:\n            self.model.run(images).backward()\n            optimizer.step()\n"
    )


def _by_callers(count: int) -> str:
    return _TRAIN + "".join(f"    train(Net{i}(), loader, optimizer)\n" for i in range(count))


def _by_list(count: int) -> str:
    items = ", ".join(f"Net{i}()" for i in range(count))
    return f"{_TRAIN}    for model in [{items}]:\n        train(model, loader, optimizer)\n"


def _by_generator(count: int) -> str:
    made = "".join(f"    yield Net{i}()\n" for i in range(count))
    return f"\ndef nets():\n{made}{_TRAIN}    for model in nets():\n        train(model, loader, optimizer)\n"


def _by_conditional(count: int) -> str:
    chosen = " else ".join([*(f"Net{i}() if kind == {i}" for i in range(count - 1)), f"Net{count - 1}()"])
    return f"{_TRAIN}    train({chosen}, loader, optimizer)\n"


def _by_base(count: int) -> str:
    calls = "\nclass Base:\n    def run(self, x):\n        raise NotImplementedError\n"
    children = "".join(
        f"class Child{i}(Base, Net{i}):\n    def run(self, x):\n        return x\n" for i in range(count)
    )
    return calls + children + _TRAIN.replace("model,", "model: Base,") + "    train(None, loader, optimizer)\n"


_SHAPES = [
    _by_if, _by_match, _by_factory, _by_table, _by_registry, _by_attribute, _by_callers, _by_list, _by_generator,
    _by_conditional, _by_base,
]  # fmt: skip


def _linked(shape: Callable[[int], str], count: int) -> Program:
    text = _HEAD + _classes(count) + shape(count)
    return Program({"main.py": survey(ast.parse(text), text.split("\n"))})


@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("count", [5, 50])
def test_every_branch_of_a_dispatch_runs_in_the_step(shape: Callable[[int], str], count: int) -> None:
    program = _linked(shape, count)
    prefix = "Child" if shape is _by_base else "Net"
    runs = [Scope("main.py", f"{prefix}{i}.run") for i in range(count)]
    assert [scope.function for scope in runs if program.heat(scope).name != "STEP"] == []


@pytest.mark.parametrize("shape", _SHAPES)
def test_twice_the_branches_are_twice_the_work(shape: Callable[[int], str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    refs = Resolver.refs

    def counted(self: Resolver, *args: object) -> object:
        nonlocal asked
        asked += 1
        return refs(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Resolver, "refs", counted)
    counts = []
    for count in (40, 80):
        asked = 0
        _linked(shape, count)
        counts.append(asked)
    assert counts[1] < 2.5 * counts[0]
