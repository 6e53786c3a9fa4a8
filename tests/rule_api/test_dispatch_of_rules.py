"""What a rule is shown, as its author states it in `listens`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from perflint import engine
from perflint.finding import Finding, Heat, Impact
from perflint.ir.calls import callee_name
from perflint.project.discovery import discover
from perflint.project.settings import load_settings
from perflint.rule_api.context import Context
from perflint.rule_api.rule import Calls, Functions, Rule

PROGRAM = """\
def set_up(model):
    log("cold")
    mark("cold")

def train(model, loader, optimizer):
    log("before the loop")
    for batch in loader:
        log("hot")
        model(batch).backward()
        optimizer.step()
"""


class Shown(Rule):
    """Tells what it was shown."""

    code, name = "TPL999", "shown"
    impact = Impact.LOW
    listens = (Functions("backward"), Calls("mark"), Calls("log", at_least=Heat.STEP))

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        what = node.name if isinstance(node, ast.FunctionDef) else ""
        if isinstance(node, ast.Call):
            what = f"{callee_name(node)}({ctx.text(node.args[0])})"
        yield self.finding(node, ctx, what)


def test_a_rule_sees_each_thing_from_the_heat_that_it_asks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "perflint.toml").touch()
    monkeypatch.chdir(tmp_path)
    settings = load_settings(tmp_path)
    report = engine.check(discover(["."], settings), engine.Options(settings, [Shown()], cache=False, jobs=1))
    assert [finding.message for finding in report.findings] == ['mark("cold")', "train", 'log("hot")']
