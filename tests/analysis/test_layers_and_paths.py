"""Layers in a row, single operations, what is compiled, and which modules an optimizer steps."""

from __future__ import annotations

import ast

import pytest
from of_text import call_at, facts_of, node_at

from perflint.analysis.call_graph.compiled_code import asks_for_tracing, compiled_at, is_compile_call
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.module_sizes import holds_few, holds_nothing
from perflint.analysis.gradients.optimized import steps_no_model
from perflint.analysis.gradients.trained_after import (
    forwards_of_loss,
    is_differentiated,
    is_walked_again,
    trained_after,
)
from perflint.analysis.values.compiled_handles import compiled_handle, may_run_compiled, wrapped_uncompiled
from perflint.analysis.values.first_results import first_taken, only_first_used
from perflint.analysis.values.module_paths import compiled_around, module_path
from perflint.analysis.values.next_layers import next_in_forward, next_in_sequence
from perflint.analysis.values.single_operations import single_operation

_HEAD = "import torch\nfrom torch import nn, optim\n\n"


def _calls(facts: FileFacts, func: str) -> list[ast.Call]:
    calls = [part for part in ast.walk(facts.tree.module) if isinstance(part, ast.Call)]
    return [call for call in calls if facts.text(call.func) == func]


@pytest.mark.parametrize(
    ("layers", "follows"),
    [
        ("nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)", True),
        ("nn.Conv2d(3, 4, 1), nn.ReLU(), nn.BatchNorm2d(4)", False),
    ],
)
def test_a_normalization_stands_right_behind_a_layer(layers: str, *, follows: bool) -> None:
    facts = facts_of(f"{_HEAD}net = nn.Sequential({layers})\n")
    found = next_in_sequence(_calls(facts, "nn.Conv2d")[0], facts)
    assert (found is not None) is follows


@pytest.mark.parametrize(
    ("forward", "follows"),
    [
        ("return self.norm(self.conv(x))", True),
        ("x = self.conv(x)\n        return self.norm(x)", True),
        ("return self.norm(self.act(self.conv(x)))", False),
        ("return self.norm(self.conv(x)) + self.conv(x)", False),
    ],
)
def test_a_normalization_is_called_with_what_a_layer_gives(forward: str, *, follows: bool) -> None:
    text = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    text += "        self.conv = nn.Conv2d(3, 4, 1)\n        self.norm = nn.BatchNorm2d(4)\n\n"
    facts = facts_of(f"{_HEAD}{text}    def forward(self, x):\n        {forward}\n")
    assert (next_in_forward(_calls(facts, "nn.Conv2d")[0], facts) is not None) is follows


def test_single_operations_are_told_in_words() -> None:
    text = "layer = nn.Linear(4, 4)\nnet = nn.Sequential(layer, layer)\nhere(layer, net, torch.relu)\n"
    facts = facts_of(_HEAD + text)
    layer, net, function = call_at(facts, "here(layer, net, torch.relu)").args
    assert single_operation(layer, facts) == "one `Linear`"
    assert single_operation(net, facts) is None
    assert single_operation(function, facts) == "the operation `torch.relu`"


_SIZES = """
class Nothing(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2

    def forward(self, x):
        return x * self.scale

class Something(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))

    def forward(self, x):
        return self.layer(x)

def go(x):
    nothing, something, layer = Nothing(), Something(), nn.Linear(4, 4)
    nothing(x)
    something(x)
    layer(x)
"""


def test_modules_hold_nothing_or_a_few_parameters() -> None:
    facts = facts_of(_HEAD + _SIZES)
    nothing, something, layer = (call_at(facts, f"{name}(x)") for name in ("nothing", "something", "layer"))
    assert [holds_nothing(call, facts) for call in (nothing, something, layer)] == [True, False, True]
    assert [holds_few(facts.kind(call.func), facts) for call in (something, layer)] == [False, True]


def test_the_name_of_what_is_compiled_may_be_passed_by() -> None:
    text = "net = nn.Linear(4, 4)\nfast = torch.compile(net)\nwrapped = nn.parallel.DistributedDataParallel(net)\n"
    facts = facts_of(f"{_HEAD}def go(x):\n    " + text.replace("\n", "\n    ") + "fast(x)\n    fast.eval()\n")
    call = call_at(facts, "torch.compile(net)")
    assert is_compile_call(call, facts)
    handle = compiled_handle(call, facts.tree.parent(call), facts)
    assert handle is not None
    wrapped = wrapped_uncompiled(handle, facts)
    assert wrapped is not None
    assert facts.text(wrapped.args[0]) == "net"
    names = [part for part in ast.walk(facts.tree.module) if isinstance(part, ast.Name) and part.id == "fast"]
    loads = sorted((name for name in names if isinstance(name.ctx, ast.Load)), key=lambda name: name.lineno)
    assert [may_run_compiled(name, facts) for name in loads] == [True, False]


def test_code_is_compiled_by_a_decorator_and_not_under_a_test_of_tracing() -> None:
    text = (
        "@torch.compile\ndef run(x):\n    if not torch.compiler.is_compiling():\n        print(x)\n    return x.sum()\n"
    )
    facts = facts_of(_HEAD + text)
    assert compiled_at(call_at(facts, "x.sum()"), facts) is not None
    assert compiled_at(call_at(facts, "print(x)"), facts) is None
    assert asks_for_tracing(call_at(facts, "torch.compiler.is_compiling()"))


def test_a_part_of_a_compiled_module_has_a_path() -> None:
    text = "def go(net):\n    layer = net.encoder\n    fast = torch.compile(net)\n    here(layer)\n    fast(1)\n"
    facts = facts_of(_HEAD + text)
    here = call_at(facts, "here(layer)")
    assert module_path(here.args[0], facts, 4) == "net.encoder"
    assert [(found.path, found.bound) for found in compiled_around(here, facts)] == [("net", "fast")]


_CRITIC = """
def go(x, noise):
    critic, generator = nn.Linear(4, 1), nn.Linear(4, 4)
    optimizer = optim.Adam(critic.parameters())
    other = optim.Adam(generator.parameters())
    for step in range(100):
        fake = generator(noise)
        loss = critic(fake).mean()
        loss.backward()
        optimizer.step()
        more = critic(generator(noise)).mean()
        more.backward()
        other.step()
"""


def test_modules_are_stepped_after_a_backward_pass() -> None:
    facts = facts_of(_HEAD + _CRITIC)
    backward = call_at(facts, "loss.backward()")
    assert trained_after(backward, facts) == {"critic"}
    assert trained_after(call_at(facts, "more.backward()"), facts) == {"generator"}
    [(forward, given)] = list(forwards_of_loss(backward, {"critic"}, facts))
    assert (facts.text(forward), facts.text(given)) == ("critic(fake)", "fake")
    assert not is_walked_again(forward, backward, facts)
    assert not is_differentiated(given, backward, facts)


def test_some_tensors_are_no_model() -> None:
    text = "def go(delta, net):\n    optimizer = {}\n    for i in range(9):\n        net(delta).sum().backward()\n"
    for made, is_none in (("optim.Adam([delta], lr=0.1)", True), ("optim.Adam(net.parameters())", False)):
        facts = facts_of(_HEAD + text.format(made) + "        optimizer.step()\n")
        loop = next(part for part in ast.walk(facts.tree.module) if isinstance(part, ast.For))
        assert steps_no_model(loop, facts) is is_none


def test_only_the_first_result_is_used() -> None:
    facts = facts_of(
        "def go(attend, x):\n    out, _ = attend(x)\n    both = attend(x)\n    return out, both, attend(x)[0]\n"
    )
    first = node_at(facts, "attend(x)[0]", ast.Subscript)
    assert first_taken(first) is not None
    pair, whole = sorted(
        (part for part in ast.walk(facts.tree.module) if isinstance(part, ast.Assign)), key=lambda part: part.lineno
    )
    assert only_first_used(pair, facts) is not None
    assert only_first_used(whole, facts) is None
