"""Of functions that a computed name may mean, a configuration tells those that are meant."""

from __future__ import annotations

import ast

from perflint.analysis.names.refs import Scope
from perflint.analysis.program import Program
from perflint.finding import Heat
from perflint.ir.survey import survey

LOSSES = """
def near(x, y):
    return x - y
def far(x, y):
    return x + y
"""
TRAIN = """
import losses
from torch.utils.data import DataLoader
def train(model, data, optimizer, options):
    loss = getattr(losses, options.loss)
    for x, y in DataLoader(data):
        loss(model(x), y).backward()
        optimizer.step()
"""


def _heats(*words: str) -> tuple[Heat, Heat]:
    files = {"losses.py": LOSSES, "train.py": TRAIN}
    summaries = {path: survey(ast.parse(text), text.splitlines()) for path, text in files.items()}
    program = Program(summaries, configured=lambda: frozenset(words))
    return program.heat(Scope("losses.py", "near")), program.heat(Scope("losses.py", "far"))


def test_any_that_fits_may_be_meant() -> None:
    assert _heats() == (Heat.STEP, Heat.STEP)


def test_those_that_a_configuration_names_are_meant() -> None:
    assert _heats("near") == (Heat.STEP, Heat.ONCE)
