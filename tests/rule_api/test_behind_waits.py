"""Which waits of other files stay when all files are known."""

from perflint.finding import Confidence, Finding, Heat, Hop, Impact, Span
from perflint.rule_api.behind_waits import settled


def wait(path: str, line: int, *behind: tuple[str, int]) -> Finding:
    places = tuple(Hop(where, number, "a.item()") for where, number in behind)
    span = Span(line, 1, line, 9)
    return Finding("TPL201", "read", path, span, "Waits.", Confidence.HIGH, Impact.LOW, Heat.STEP, behind=places)


def test_a_wait_stays_where_a_finding_tells_of_the_one_before_it() -> None:
    first, second = wait("a.py", 3), wait("b.py", 7, ("a.py", 3))
    assert settled([first, second]) == [first, second]
    assert settled([second]) == []
    assert settled([second], silenced=[first]) == [second]


def test_what_stands_behind_a_wait_that_nobody_tells_goes_with_it() -> None:
    second, third = wait("b.py", 7, ("a.py", 3)), wait("c.py", 9, ("b.py", 7))
    assert settled([second, third]) == []


def test_waits_that_stand_behind_each_other_stay() -> None:
    both = [wait("a.py", 3, ("b.py", 7)), wait("b.py", 7, ("a.py", 3))]
    assert settled(both) == both
