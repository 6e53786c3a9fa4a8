"""The control-flow graph against Python itself: small programs run under every sequence of decisions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflint.ir.control_flow import ControlFlow, control_flow
from perflint.ir.dataflow import Problem, backward, forward


def graph_of(code: str) -> tuple[ControlFlow, ast.FunctionDef]:
    function = ast.parse(code).body[0]
    assert isinstance(function, ast.FunctionDef)
    return control_flow(function), function


def calls(function: ast.AST) -> dict[str, ast.Call]:
    """The calls of a function by their text."""
    return {ast.unparse(node): node for node in ast.walk(function) if isinstance(node, ast.Call)}


def the_call(function: ast.AST) -> ast.Call:
    (found,) = (node for node in ast.walk(function) if isinstance(node, ast.Call))
    return found


def shown(graph: ControlFlow, node: ast.AST) -> list[str]:
    return [f"{ast.unparse(test)} is {truth}" for test, truth in graph.conditions(node)]


# What is promised, on programs that are written down.


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if a: x()", ["a is True"]),
        ("if a: return\nx()", ["a is False"]),
        ("if a: raise E\nelif b: return\nelse: x()", ["a is False", "b is False"]),
        ("if a and not b: x()", ["a is True", "b is False"]),
        ("if a or b: x()", ["a or b is True"]),
        ("if a or b: return\nx()", ["a is False", "b is False"]),
        ("y = a and x()", ["a is True"]),
        ("y = a or b and x()", ["a is False", "b is True"]),
        ("y = x() if a else 0", ["a is True"]),
        ("y = 0 if a else x()", ["a is False"]),
        ("assert a\nx()", ["a is True"]),
        ("assert a, x()", ["a is False"]),
        ("while a: x()", ["a is True"]),
        ("while a: pass\nx()", ["a is False"]),
        ("while a:\n  if b: break\nx()", []),
        ("while True:\n  if a: continue\n  if b: break\nx()", ["a is False", "b is True"]),
        ("for i in y:\n  if a: continue\n  x()", ["a is False"]),
        ("for i in y:\n  if a: return\nx()", []),
        ("for i in y:\n  if a: break\nelse: x()", []),
        ("z = [x() for i in y if a if b]", ["a is True", "b is True"]),
        ("z = [i for i in y if a and x()]", ["a is True"]),
        ("try:\n  if a: return\nfinally: b()\nx()", ["a is False"]),
        ("try:\n  if a: return\nfinally: x()", []),
        ("try: b()\nexcept E: return\nx()", []),
        ("match a:\n  case 1 if b: x()", ["b is True"]),
        ("with a:\n  if b: return\n  x()", ["b is False"]),
        ("if 0: return\nx()", []),
        ("class C:\n  if a: y = x()", ["a is True"]),
    ],
)
def test_conditions_are_the_tests_that_let_a_node_run(body: str, expected: list[str]) -> None:
    graph, function = graph_of("def f():\n" + "".join(f"  {line}\n" for line in body.splitlines()))
    assert shown(graph, calls(function)["x()"]) == expected


def test_what_no_path_reaches_has_no_block() -> None:
    graph, function = graph_of("def f():\n  a()\n  return\n  b()\n  while 0: c()")
    found = calls(function)
    assert graph.block_of(found["a()"]) is not None
    assert graph.block_of(found["b()"]) is None
    assert graph.block_of(found["c()"]) is None
    assert not graph.dominates(found["a()"], found["b()"])


def test_operands_come_before_the_call_and_a_lambda_runs_later() -> None:
    graph, function = graph_of("def f():\n  a(b(), lambda: c())")
    found = calls(function)
    assert graph.dominates(found["b()"], function.body[0].value)  # type: ignore[attr-defined]
    assert graph.block_of(found["c()"]) is None


def test_a_test_that_is_nested_decides_but_one_around_it_does_not() -> None:
    graph, function = graph_of("def f():\n  if a:\n    if b: return\n    x()\n  y()")
    found = calls(function)
    assert [ast.unparse(test) for test, _ in graph.decided_by(found["x()"])] == ["b"]
    assert {(ast.unparse(test), truth) for test, truth in graph.decided_by(found["y()"])} == {
        ("b", False),
        ("a", False),
    }


def test_thousands_of_operators_and_branches_are_no_depth_of_recursion() -> None:
    chain = "  if a == 0: pass\n" + "".join(f"  elif a == {i}: pass\n" for i in range(1, 400))
    graph, function = graph_of(f"def f():\n  y = {' + '.join(['a'] * 900)}\n{chain}  x()")
    assert graph.block_of(the_call(function)) is not None


# Dataflow.


class Called(Problem["frozenset[str]"]):
    """The functions that have been called on every path (forward), or will be (backward)."""

    def at_start(self) -> frozenset[str]:
        return frozenset()

    def join(self, one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
        return one & other

    def transfer(self, node: ast.AST, state: frozenset[str]) -> frozenset[str]:
        return state | {ast.unparse(node.func)} if isinstance(node, ast.Call) else state


def test_states_meet_at_joins_and_go_round_loops() -> None:
    code = "def f():\n  a()\n  for i in y:\n    x()\n    if b(): c()\n    else: d()\n  e()"
    graph, function = graph_of(code)
    found, called = calls(function), forward(graph, Called())
    assert called.before(found["x()"]) == frozenset({"a"})
    assert called.before(found["c()"]) == frozenset({"a", "x", "b"})
    assert called.before(found["e()"]) == frozenset({"a"})
    assert called.after(found["e()"]) == frozenset({"a", "e"})
    to_come = backward(graph, Called())
    assert to_come.after(found["x()"]) == frozenset({"b", "e"})
    assert to_come.before(found["c()"]) == frozenset({"c", "e"})


def test_a_handler_is_entered_in_the_middle_of_a_block() -> None:
    graph, function = graph_of("def f():\n  a()\n  try:\n    b()\n    c()\n  except E:\n    d()\n  e()")
    found, called = calls(function), forward(graph, Called())
    assert called.before(found["c()"]) == frozenset({"a", "b"})
    assert called.before(found["d()"]) == frozenset({"a"})
    assert called.before(found["e()"]) == frozenset({"a"})


# Against Python.


class Cut(BaseException):
    """The decisions are used up."""


class Run:
    """One run of a program: `p` marks a place, `c` decides, `s` is a sequence whose length is decided. Where the run
    `may_raise`, each of them raises or does not before it is marked.
    """

    def __init__(self, bits: tuple[bool, ...], *, may_raise: bool) -> None:
        self.bits, self.used, self.may_raise = bits, 0, may_raise
        self.trace: list[tuple[int, bool | None]] = []
        self.is_cut = False

    def decide(self) -> bool:
        if self.used >= len(self.bits) or self.is_cut:
            self.is_cut = True
            raise Cut
        self.used += 1
        return self.bits[self.used - 1]

    def p(self, number: int) -> None:
        if self.is_cut:
            raise Cut
        if self.may_raise and self.decide():
            raise ValueError
        self.trace.append((number, None))

    def c(self, number: int) -> bool:
        if self.may_raise and self.decide():
            raise ValueError
        truth = self.decide()
        self.trace.append((number, truth))
        return truth

    def s(self) -> Iterator[int]:
        if self.may_raise and self.decide():
            raise ValueError
        while self.decide():
            yield 0


def traces(code: str, *, may_raise: bool, depth: int = 9) -> tuple[list[list[tuple[int, bool | None]]], bool]:
    """What is marked under every sequence of decisions, and whether `depth` decisions were always enough."""
    names: dict[str, Any] = {"suppress": suppress}
    exec(compile(code, "<program>", "exec"), names)
    found: list[list[tuple[int, bool | None]]] = []
    work: list[tuple[bool, ...]] = [()]
    complete = True
    while work:
        bits = work.pop()
        run = Run(bits, may_raise=may_raise)
        names.update(p=run.p, c=run.c, s=run.s)
        with suppress(Cut, ValueError):
            names["f"]()
        if run.is_cut and len(bits) < depth:
            work += [(*bits, False), (*bits, True)]
        else:
            complete = complete and not run.is_cut
            found.append(run.trace)
    return found, complete


class Programs:
    """Sources of small functions, with numbers for what they mark and decide."""

    def __init__(self, draw: st.DrawFn, *, unwinds: bool) -> None:
        self.draw, self.count, self.unwinds = draw, 0, unwinds
        self.left = 7

    def number(self) -> int:
        self.count += 1
        return self.count

    def test(self) -> str:
        one, form = f"c({self.number()})", self.draw(st.integers(0, 5))
        if form < 3:
            return one
        other = f"c({self.number()})"
        return {3: f"not {one}", 4: f"{one} and {other}", 5: f"{one} or not {other}"}[form]

    def expression(self) -> str:
        form = self.draw(st.integers(0, 5))
        if form < 3:
            return f"p({self.number()})"
        one = f"p({self.number()})"
        return {
            3: f"{one} if {self.test()} else p({self.number()})",
            4: f"[{one} for _ in s() if c({self.number()})]",
            5: f"{self.test()} and {one}",
        }[form]

    def block(self, *, in_loop: bool, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.draw(st.integers(1, 3))):
            lines += self.statement(in_loop=in_loop, depth=depth)
        return lines

    def inner(self, *, in_loop: bool, depth: int) -> list[str]:
        return [f"  {line}" for line in self.block(in_loop=in_loop, depth=depth + 1)]

    def statement(self, *, in_loop: bool, depth: int) -> list[str]:
        self.left -= 1
        simple = ["expression", "expression", "return", "raise", *(["break", "continue"] if in_loop else [])]
        compound = ["if", "else", "for", "while", "try", "suppress", *(["finally"] if self.unwinds else [])]
        kind = self.draw(st.sampled_from(simple if depth > 2 or self.left <= 0 else compound + simple[:1] + compound))
        if kind == "expression":
            return [self.expression()]
        if kind in ("return", "break", "continue", "raise"):
            # The graph takes it that anything in a `try` may raise: so that it may, each jump has a call before it.
            return [f"p({self.number()})", "raise ValueError" if kind == "raise" else kind]
        if kind == "if":
            return [f"if {self.test()}:", *self.inner(in_loop=in_loop, depth=depth)]
        if kind == "else":
            first = self.statement_block("if " + self.test(), in_loop=in_loop, depth=depth)
            return [*first, *self.statement_block("else", in_loop=in_loop, depth=depth)]
        if kind in ("for", "while"):
            head = "for _ in s()" if kind == "for" else f"while {self.test()}"
            loop = self.statement_block(head, in_loop=True, depth=depth)
            if self.draw(st.booleans()):
                loop += self.statement_block("else", in_loop=in_loop, depth=depth)
            return loop
        if kind == "suppress":
            return self.statement_block("with suppress(ValueError)", in_loop=in_loop, depth=depth)
        lines = self.statement_block("try", in_loop=in_loop, depth=depth)
        if kind == "try" or self.draw(st.booleans()):
            lines += self.statement_block("except ValueError", in_loop=in_loop, depth=depth)
        if kind == "finally":
            # A jump out of `finally` would swallow what is raised, the end of the decisions included.
            lines += ["finally:", f"  {self.expression()}"]
        return lines

    def statement_block(self, head: str, *, in_loop: bool, depth: int) -> list[str]:
        return [f"{head}:", *self.inner(in_loop=in_loop, depth=depth)]


@st.composite
def programs(draw: st.DrawFn, *, unwinds: bool) -> str:
    body = Programs(draw, unwinds=unwinds).block(in_loop=False, depth=0)
    return "def f():\n" + "".join(f"  {line}\n" for line in body)


def numbered(function: ast.AST) -> dict[int, ast.Call]:
    return {
        call.args[0].value: call  # type: ignore[misc]
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Constant)
    }


Trace = list[tuple[int, "bool | None"]]


def always_before(first: int, second: int, runs: list[Trace]) -> bool:
    for trace in runs:
        numbers = [number for number, _ in trace]
        if second in numbers and first not in numbers[: numbers.index(second)]:
            return False
    return True


def always_after(later: int, earlier: int, runs: list[Trace]) -> bool:
    for trace in runs:
        numbers = [number for number, _ in trace]
        if earlier in numbers and later not in numbers[len(numbers) - numbers[::-1].index(earlier) :]:
            return False
    return True


def last_outcomes(test: int, node: int, runs: list[Trace]) -> set[bool | None]:
    """How a test had last come out where a node was marked, None where it had not been evaluated."""
    found: set[bool | None] = set()
    for trace in runs:
        last: bool | None = None
        for number, truth in trace:
            if number == node:
                found.add(last)
            if number == test:
                last = truth
    return found


@settings(max_examples=100, deadline=None)
@given(programs(unwinds=True))
def test_nothing_is_claimed_that_a_run_refutes(code: str) -> None:
    graph, function = graph_of(code)
    nodes = numbered(function)
    runs, _ = traces(code, may_raise=True)
    smooth, complete = traces(code, may_raise=False)
    seen = {number for trace in runs for number, _ in trace}
    for one, first in nodes.items():
        assert one not in seen or graph.block_of(first) is not None, code
        for test, truth in graph.conditions(first):
            if isinstance(test, ast.Call) and test.args:
                number = test.args[0].value  # type: ignore[attr-defined]
                assert last_outcomes(number, one, runs) <= {truth}, (code, number, one)
        for other, second in nodes.items():
            if one != other and graph.dominates(first, second):
                assert always_before(one, other, runs), (code, one, other)
            if one != other and complete and graph.post_dominates(first, second):
                assert always_after(one, other, smooth), (code, one, other)
    for trace in runs:
        for (one, _), (other, _) in pairwise(trace):
            assert graph.reaches(nodes[one], nodes[other]), (code, one, other)


@settings(max_examples=100, deadline=None)
@given(programs(unwinds=False))
def test_nothing_that_always_holds_is_missed(code: str) -> None:
    graph, function = graph_of(code)
    nodes = numbered(function)
    runs, complete = traces(code, may_raise=True)
    seen = {number for trace in runs for number, _ in trace}
    tests = {number for number, node in nodes.items() if isinstance(node.func, ast.Name) and node.func.id == "c"}
    if not complete:
        return
    for other in seen:
        known = {(id(test), truth) for test, truth in graph.conditions(nodes[other])}
        for one in seen - {other}:
            if always_before(one, other, runs):
                assert graph.dominates(nodes[one], nodes[other]), (code, one, other)
            outcomes = last_outcomes(one, other, runs)
            if one in tests and len(outcomes) == 1 and None not in outcomes:
                assert (id(nodes[one]), outcomes.pop()) in known, (code, one, other)
