"""Facts that are read when somebody asks for them: the same as those that are read at once, and seldom asked for."""

from __future__ import annotations

import ast
import pickle

import pytest

from perflint.analysis.program import Program
from perflint.ir.effects import Unread
from perflint.ir.summary import PUT_OFF, Summary
from perflint.ir.survey import survey

_TEXT = """
import torch

class Meter:
    def __init__(self):
        self.values = []

    def update(self, value):
        if value is not None:
            self.values.append(value)

def run(model, loader, meter):
    with torch.no_grad():
        for batch in loader:
            meter.update(model(batch).item())

def plain(x):
    return x + 1
"""


def _surveyed() -> Summary:
    return survey(ast.parse(_TEXT), _TEXT.split("\n"))


def test_what_is_settled_at_once_is_what_is_read_later() -> None:
    at_once = _surveyed()
    at_once.settle()
    assert all(facts.later is None for facts in at_once.functions.values())
    assert _surveyed() == at_once
    assert [fact.kind for fact in at_once.functions["Meter.update"].does] == ["keeps"]
    assert at_once.functions["Meter.update"].uncertain


def test_a_copy_leaves_put_off_what_is() -> None:
    facts = _surveyed().functions["run"]
    copy = facts.copied()
    assert copy.later is facts.later
    assert copy is not facts
    assert copy == facts


def test_who_takes_a_function_to_another_process_takes_no_tree() -> None:
    summary = _surveyed()
    taken = pickle.loads(pickle.dumps(summary))
    assert taken == summary
    assert all(facts.later is None for facts in taken.functions.values())


def test_only_what_has_a_with_may_enter() -> None:
    functions = _surveyed().functions
    assert {name for name, facts in functions.items() if facts.later and facts.may_enter} == {"run"}


def test_a_program_reads_no_effects_to_be_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    read = Unread.read

    def noted(self: Unread, name: str) -> tuple[object, ...]:
        asked.append(name)
        return read(self, name)

    monkeypatch.setattr(Unread, "read", noted)
    Program({"a.py": _surveyed()})
    assert asked == []
    assert set(PUT_OFF) == {"effects", "does", "uncertain"}
