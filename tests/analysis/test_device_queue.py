"""The device's queue in small functions: `small()` launches a kernel, `big()` many, `wait()` drains the queue."""

from __future__ import annotations

import ast

import pytest

from perflint.analysis.cost import Exposure, impact_of_wait
from perflint.analysis.device_queue.queue import FULL, Change, DeviceQueue, QueueState
from perflint.finding import Impact
from perflint.ir.control_flow import Condition, control_flow

_CHANGES = {"small": Change.LAUNCHES, "big": Change.WORKS, "wait": Change.WAITS}


def change(node: ast.AST) -> Change:
    name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    return _CHANGES.get(name, Change.NOTHING)


def is_rare(condition: Condition) -> bool:
    return ast.unparse(condition[0]) == "rare" and condition[1]


def queue_at_x(body: str, *, in_loop: bool = False, **told: bool) -> tuple[int, list[int], int]:
    """Launches before the call `x()`, the lines of the waits that emptied the queue, and launches after it."""
    lines = "".join(f"  {'  ' * in_loop}{line}\n" for line in body.splitlines())
    header = "  for step in steps:\n" if in_loop else ""
    function = ast.parse(f"def f():\n{header}{lines}").body[0]
    assert isinstance(function, ast.FunctionDef)
    loop = function.body[0] if in_loop else None
    assert loop is None or isinstance(loop, ast.For)
    queue = DeviceQueue(control_flow(function), change, loop, is_rare, **told)
    (node,) = (part for part in ast.walk(function) if isinstance(part, ast.Call) and ast.unparse(part) == "x()")
    state = queue.before(node)
    first = function.lineno + 1 + in_loop
    waits = sorted(wait.lineno - first for wait in state.emptied_by)  # type: ignore[attr-defined]
    return state.launched, waits, queue.launched_after(node)


@pytest.mark.parametrize(
    ("body", "launched", "waits"),
    [
        ("x()", FULL, []),
        ("big()\nwait()\nx()", 0, [1]),
        ("wait()\nsmall()\nx()", 1, [0]),
        ("wait()\nbig()\nx()", FULL, []),
        ("wait()\nfor i in y: small()\nx()", FULL, []),
        ("if a: wait()\nx()", FULL, []),
        ("if a: wait()\nelse: wait()\nx()", 0, [0, 1]),
        ("wait()\nif a: big()\nx()", FULL, []),
        ("wait()\nif rare: big()\nx()", 0, [0]),
        ("a and wait()\nx()", FULL, []),
        ("wait()\na and big()\nx()", FULL, []),
        ("wait()\nreturn [x() for i in y]", 0, [0]),
        ("wait()\nfor i in y:\n  x()\n  big()", FULL, []),
        ("for i in y:\n  wait()\n  x()\n  big()", 0, [1]),
        ("try: wait()\nexcept E: pass\nx()", FULL, []),
        ("big(wait())\nx()", FULL, []),
        ("wait(big())\nx()", 0, [0]),
    ],
)
def test_what_has_been_launched_since_the_last_wait(body: str, launched: int, waits: list[int]) -> None:
    assert queue_at_x(body)[:2] == (launched, waits)


@pytest.mark.parametrize(
    ("body", "following"),
    [
        ("x()\nsmall()", 1),
        ("big()\nx()", 0),
        ("x()\nwait()\nbig()", FULL),
        ("x()\nif a: big()", FULL),
        ("x()\nif rare: big()", 0),
        ("x()\nif a: break", 0),
        ("x()\nfor i in y: small()", FULL),
        ("for i in y:\n  big()\n  x()", FULL),
    ],
)
def test_what_is_launched_before_the_iteration_ends(body: str, following: int) -> None:
    assert queue_at_x(body, in_loop=True)[2] == following


def test_what_a_function_that_is_part_of_a_step_leaves_is_not_known() -> None:
    assert queue_at_x("x()\nreturn")[2] == FULL
    assert queue_at_x("x()\nreturn", ends_step=True)[2] == 0
    assert queue_at_x("x()\nraise E")[2] == 0


def test_a_function_may_be_called_with_an_empty_queue() -> None:
    assert queue_at_x("small()\nx()", starts_empty=True)[:2] == (1, [])


def test_a_step_begins_as_the_one_before_it_ended() -> None:
    assert queue_at_x("x()\nbig()\nwait()", in_loop=True)[:2] == (0, [2])
    assert queue_at_x("x()\nwait()\nbig()", in_loop=True)[:2] == (FULL, [])


def test_states_are_a_lattice() -> None:
    nodes = [ast.Pass(), ast.Pass()]
    states = [QueueState(count, frozenset(nodes[:some])) for count in (0, 2) for some in (0, 1, 2)]
    states.append(QueueState(FULL))
    for one in states:
        assert one.join(one) == one
        for other in states:
            assert one.join(other) == other.join(one)
            for third in states:
                assert one.join(other).join(third) == one.join(other.join(third))


@pytest.mark.parametrize(
    ("exposure", "impact"),
    [
        (Exposure(FULL, FULL, is_repeated=True, trains=True), Impact.HIGH),
        (Exposure(FULL, FULL, is_repeated=False, trains=True), Impact.MEDIUM),
        (Exposure(1, FULL, is_repeated=True, trains=True), Impact.LOW),
        (Exposure(FULL, 0, is_repeated=True, trains=True), Impact.LOW),
        (Exposure(FULL, FULL, is_repeated=True, trains=False), Impact.MEDIUM),
        (Exposure(FULL, FULL, is_repeated=False, trains=False), Impact.LOW),
    ],
)
def test_a_wait_costs_what_it_exposes(exposure: Exposure, impact: Impact) -> None:
    assert impact_of_wait(exposure) is impact
