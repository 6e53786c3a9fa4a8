"""Under which tests a node runs: branches, what leaves before, operands to the left; and what excludes what."""

from __future__ import annotations

from of_text import call_at, facts_of

_TEXT = """
def go(batch, flag, steps):
    if batch is None:
        return
    assert steps
    for step in range(steps):
        while waiting():
            early() if flag else late()
        if step == 0:
            first()
        else:
            flag and other()
"""


def told(text: str, **asked: bool) -> list[tuple[str, bool]]:
    facts = facts_of(_TEXT)
    return [(facts.text(test), holds) for test, holds in facts.conditions(call_at(facts, text), **asked)]


def test_all_tests_by_which_a_run_comes_to_a_node() -> None:
    assert told("first()") == [("batch is None", False), ("step == 0", True)]
    assert told("other()") == [("batch is None", False), ("step == 0", False), ("flag", True)]


def test_what_a_loop_asks_before_each_turn_is_no_branch() -> None:
    assert told("early()") == [("batch is None", False), ("flag", True)]


def test_what_would_have_left_before_can_be_left_out() -> None:
    assert told("first()", exits=False) == [("step == 0", True)]


def test_a_function_runs_under_the_tests_under_which_it_is_made() -> None:
    facts = facts_of('if __name__ == "__main__":\n    def go():\n        if x:\n            here()\n')
    here = call_at(facts, "here()")
    assert [facts.text(test) for test, _ in facts.conditions(here)] == ["x"]
    assert [facts.text(test) for test, _ in facts.conditions(here, outward=True)] == ['__name__ == "__main__"', "x"]


def test_two_arms_exclude_each_other() -> None:
    facts = facts_of(_TEXT)
    first, other, early = (call_at(facts, text) for text in ("first()", "other()", "early()"))
    assert facts.are_exclusive(first, other)
    assert not facts.are_exclusive(first, early)
