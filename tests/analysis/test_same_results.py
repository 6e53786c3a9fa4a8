"""Which calls give the same again: in one function, on each turn of a loop, and in texts that are built."""

from __future__ import annotations

import ast

import pytest
from of_text import call_at, facts_of, node_at

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.few_parts import goes_over_names_of_parts
from perflint.analysis.gradients.drawn_anew import draws_anew
from perflint.analysis.gradients.evaluated_calls import may_evaluate, only_evaluates
from perflint.analysis.gradients.forwards import only_shapes
from perflint.analysis.gradients.helper_forwards import runs_given_model
from perflint.analysis.invariants.between_calls import comes_before, is_switched_between, managers_around
from perflint.analysis.invariants.caller_numbers import are_numbers_of_callers
from perflint.analysis.invariants.in_loops import is_thrown_away, is_unchanging
from perflint.analysis.invariants.same_results import meaning_of, means_the_same
from perflint.analysis.invariants.turn_dependence import regions_of_turns
from perflint.analysis.phases.loop_purpose import only_repeats
from perflint.analysis.values.built_texts import built_text, is_same_text

_HEAD = """
import torch
from torch import nn

class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return self.weight.view(1, 4).expand(8, 4)

@torch.no_grad()
def score(model, x):
    return model(x)

"""


def _facts(body: str, given: str = "net: nn.Linear, x, y") -> FileFacts:
    return facts_of(f"{_HEAD}def go({given}):\n    " + body.replace("\n", "\n    ") + "\n")


def _go(facts: FileFacts) -> ast.FunctionDef:
    return next(part for part in facts.tree.module.body if isinstance(part, ast.FunctionDef) and part.name == "go")


def _loop(facts: FileFacts) -> ast.For:
    return next(part for part in ast.walk(facts.tree.module) if isinstance(part, ast.For))


def _runs(facts: FileFacts) -> list[ast.Call]:
    calls = [part for part in ast.walk(_go(facts)) if isinstance(part, ast.Call) and facts.text(part.func) == "net"]
    return sorted(calls, key=lambda call: call.lineno)


@pytest.mark.parametrize(("between", "same"), [("y = 1", True), ("x = x + 1", False), ("x = y", False)])
def test_arguments_mean_the_same_until_they_are_set(between: str, *, same: bool) -> None:
    facts = _facts(f"a = net(x)\n{between}\nb = net(x)")
    first, second = _runs(facts)
    assert meaning_of(first, facts) == meaning_of(second, facts) == "net(x)"
    assert means_the_same(first.args[0], second.args[0], facts, 4) is same


@pytest.mark.parametrize(
    ("between", "switched"),
    [
        ("pass", False),
        ("net.train()", True),
        ("net.weight.data.fill_(0)", True),
        ("prune(net)", True),
        ("x[0] = 1", True),
        ("net.weight = y", True),
        ("print(y)", False),
    ],
)
def test_what_may_change_a_model_or_its_input_is_seen(between: str, *, switched: bool) -> None:
    facts = _facts(f"a = net(x)\n{between}\nb = net(x)")
    first, second = _runs(facts)
    assert is_switched_between(first, second, None, _go(facts), facts) is switched


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ("a = net(x)\nb = net(x)", True),
        ("if y:\n    a = net(x)\nb = net(x)", False),
        ("for i in (1, 2):\n    a = net(x)\nb = net(x)", True),
        ("for i in y:\n    a = net(x)\nb = net(x)", False),
    ],
)
def test_a_call_has_always_run_before_another(body: str, *, before: bool) -> None:
    facts = _facts(body)
    first, second = _runs(facts)
    assert comes_before(first, second, facts) is before


def test_managers_that_only_switch_gradients_do_not_count() -> None:
    facts = _facts("with torch.no_grad(), hooked(net):\n    a = net(x)\nwith torch.no_grad():\n    b = net(x)")
    assert [managers_around(run, facts) for run in _runs(facts)] == [["hooked(net)"], []]


@pytest.mark.parametrize(
    ("body", "evaluates"),
    [
        ("with torch.no_grad():\n    a = net(x)", True),
        ("net.eval()\na = net(x)", True),
        ("net.eval()\na = net(x)\na.sum().backward()", False),
        ("a = net(x)", False),
    ],
)
def test_a_call_is_run_for_its_values(body: str, *, evaluates: bool) -> None:
    facts = _facts(body)
    assert only_evaluates(_runs(facts)[0], _go(facts), facts) is evaluates
    assert may_evaluate(_go(facts), facts) is (body != "a = net(x)")


@pytest.mark.parametrize(
    ("inside", "unchanging"),
    [
        ("a = net(x)", True),
        ("a = net(y)", False),
        ("a = net(x)\n    change(x)", False),
        ("a = net(x)\n    x.data.fill_(0)", False),
    ],
)
def test_a_call_has_the_same_inputs_on_each_turn(inside: str, *, unchanging: bool) -> None:
    facts = _facts(f"for y in x:\n    {inside}", "net: nn.Linear, x")
    assert is_unchanging(_runs(facts)[0], _loop(facts), facts) is (unchanging and "x:" not in inside)


@pytest.mark.parametrize(
    ("body", "draws"),
    [
        ("for i in y:\n    a = net(x)", False),
        ("net.train()\nfor i in y:\n    a = net(x)", True),
        ("for i in range(n_samples):\n    a = net(x)", True),
        ("for i in y:\n    a = net(x)\n    total += a.item()", True),
        ("for i in y:\n    a = net(x)\n    total += a.item() * i", False),
    ],
)
def test_a_model_draws_in_each_forward(body: str, *, draws: bool) -> None:
    facts = _facts(body)
    assert draws_anew(_runs(facts)[0], _loop(facts), facts) is draws


def test_functions_run_a_model_that_they_are_given_and_some_forwards_only_shape() -> None:
    facts = _facts("score(net, x)\nscore(x, net)\ntable = Table()\ntable(x)\nnet(x)")
    assert runs_given_model(call_at(facts, "score(net, x)"), facts)
    assert not runs_given_model(call_at(facts, "score(x, net)"), facts)
    assert only_shapes(call_at(facts, "table(x)"), facts)
    assert not only_shapes(call_at(facts, "net(x)"), facts)


def test_results_that_nobody_takes_and_loops_that_only_repeat() -> None:
    facts = _facts("net(x)\n_ = net(y)\na = net(x + y)\nfor _ in range(3):\n    b = net(x)")
    assert [is_thrown_away(run, facts) for run in _runs(facts)] == [True, True, False, False]
    assert only_repeats(_loop(facts))
    assert not only_repeats(_loop(_facts("for i in y:\n    b = net(x)")))


@pytest.mark.parametrize(
    ("text", "built", "same"),
    [
        ('f"{x}.weight"', True, True),
        ('f"{name}.weight"', True, False),
        ('"a" + x', True, True),
        ('"%s" % lookup(x)', True, False),
        ('"literal"', False, True),
    ],
)
def test_texts_are_put_together_from_what_a_loop_changes_or_not(text: str, *, built: bool, same: bool) -> None:
    facts = _facts(f"for name in y:\n    here({text})")
    call = call_at(facts, f"here({text})")
    assert (built_text(call.args[0], call, facts) is not None) is built
    assert is_same_text(call.args[0], _loop(facts)) is same


def test_numbers_of_callers_reach_through_loops() -> None:
    facts = _facts("here([f(v) for v in y])", "x: str, y: list[int]")
    regions = regions_of_turns(node_at(facts, "f(v)", ast.Call), facts)
    assert [type(region) for region in regions] == [ast.ListComp]
    here = call_at(facts, "here([f(v) for v in y])")
    assert are_numbers_of_callers({"v", "y"}, regions, here, facts)
    assert not are_numbers_of_callers({"v", "x"}, regions, here, facts)


def test_a_model_has_many_parameters_and_few_children() -> None:
    assert goes_over_names_of_parts(_loop(_facts("for name, p in net.named_parameters():\n    pass")))
    assert not goes_over_names_of_parts(_loop(_facts("for name, p in net.named_children():\n    pass")))
    assert not goes_over_names_of_parts(_loop(_facts("for name in names:\n    pass")))
