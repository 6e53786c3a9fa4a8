"""The device's queue in small functions: `small()` launches a kernel, `big()` many, `wait()` drains the queue."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from perflint.analysis.cost import Exposure, impact_of_wait
from perflint.analysis.device_queue.functions import Entry
from perflint.analysis.device_queue.queue import DeviceQueue, QueueState
from perflint.analysis.device_queue.transfer import FULL, NEVER, NOTHING, WORK, Transfer, launching, waiting
from perflint.finding import Impact
from perflint.ir.control_flow import Condition, control_flow

_CHANGES = {"small": launching(1), "big": WORK, "wait": waiting(None), "evaluate": WORK.then(waiting(None))}


def change(node: ast.AST) -> Transfer:
    name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    return _CHANGES.get(name, NOTHING)


def may_wait(node: ast.AST) -> bool:
    return change(node).fresh is not None


def is_rare(condition: Condition) -> bool:
    return ast.unparse(condition[0]) == "rare" and condition[1]


def queue_at_x(
    body: str, *, in_loop: bool = False, ends_step: bool = False, entry: Callable[[], Entry] | None = None
) -> tuple[int, list[int], int]:
    """Launches before the call `x()`, the lines of the waits that emptied the queue, and launches after it."""
    queue, node, first = _queue(body, in_loop, ends_step, entry)
    state = queue.before(node)
    waits = sorted(wait.lineno - first for wait in state.emptied_by if isinstance(wait, ast.Call))
    return state.launched, waits, queue.launched_after(node)


def _queue(
    body: str, in_loop: bool, ends_step: bool, entry: Callable[[], Entry] | None
) -> tuple[DeviceQueue, ast.Call, int]:
    """The queue of a function, the call `x()` in it, and the line on which its body begins."""
    lines = "".join(f"  {'  ' * in_loop}{line}\n" for line in body.splitlines())
    header = "  for step in steps:\n" if in_loop else ""
    function = ast.parse(f"def f():\n{header}{lines}").body[0]
    assert isinstance(function, ast.FunctionDef)
    loop = function.body[0] if in_loop else None
    assert loop is None or isinstance(loop, ast.For)
    graph = control_flow(function)
    queue = DeviceQueue(graph, change, loop, is_rare, may_wait=may_wait, ends_step=ends_step, entry=entry)
    (node,) = (part for part in ast.walk(function) if isinstance(part, ast.Call) and ast.unparse(part) == "x()")
    return queue, node, function.lineno + 1 + in_loop


@pytest.mark.parametrize(
    ("body", "launched", "waits"),
    [
        ("x()", FULL, []),
        ("big()\nwait()\nx()", 0, [1]),
        ("wait()\nsmall()\nx()", 1, [0]),
        ("wait()\nbig()\nx()", FULL, []),
        ("wait()\nfor i in y: small()\nx()", FULL, []),
        ("for i in y: wait()\nx()", 0, [0]),
        ("for i in y:\n  if a: break\n  wait()\nx()", FULL, []),
        ("while a:\n  wait()\nx()", 0, [1]),
        ("big()\nfor i in y: f()\nx()", FULL, []),
        ("if a: wait()\nx()", FULL, []),
        ("if a: wait()\nelse: wait()\nx()", 0, [0, 1]),
        ("wait()\nif a: big()\nx()", FULL, []),
        ("wait()\nif rare: big()\nx()", 0, [0]),
        # What holds in an assertion may look like a rare condition.
        ("wait()\nassert rare\nx()", 0, [0]),
        ("wait()\nassert rare, 'no'\nbig()\nx()", FULL, []),
        ("a and wait()\nx()", FULL, []),
        ("wait()\na and big()\nx()", FULL, []),
        ("wait()\nreturn [x() for i in y]", 0, [0]),
        ("wait()\nfor i in y:\n  x()\n  big()", FULL, []),
        ("for i in y:\n  wait()\n  x()\n  big()", 0, [1]),
        ("try: wait()\nexcept E: pass\nx()", FULL, []),
        ("big(wait())\nx()", FULL, []),
        ("wait(big())\nx()", 0, [0]),
        ("evaluate()\nx()", 0, [0]),
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
        ("x()\nevaluate()", FULL),
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
    assert queue_at_x("small()\nx()", entry=lambda: Entry(0))[:2] == (1, [])
    assert queue_at_x("small()\nx()", entry=lambda: Entry(FULL))[:2] == (FULL, [])


@pytest.mark.parametrize(
    ("body", "launched"),
    [
        ("x()\nwait()\nbig()", 0),
        ("x()\nsmall()\nwait()", 1),
        ("x()\nbig()\nwait()", FULL),
        ("x()\nif a: wait()", FULL),
        ("x()", FULL),
    ],
)
def test_what_is_launched_until_the_host_waits_again(body: str, launched: int) -> None:
    queue, node, _ = _queue(body, in_loop=True, ends_step=False, entry=None)
    assert queue.launched_until_next_wait(node) == launched


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


def test_transfers_are_a_lattice_and_compose() -> None:
    codes = [NEVER, NOTHING, WORK, launching(1), launching(3), waiting(None), launching(2).then(waiting(None))]
    codes += [one.join(other) for one in codes for other in codes]
    for one in codes:
        assert one.join(one) == one == one.then(NOTHING) == NOTHING.then(one)
        assert one.again() == one.again().join(one.again().then(one))
        for other in codes[:12]:
            assert one.join(other) == other.join(one)
            for third in codes[:12]:
                assert one.join(other).join(third) == one.join(other.join(third))
                assert one.then(other).then(third) == one.then(other.then(third))
                assert one.join(other).then(third) == one.then(third).join(other.then(third))


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
