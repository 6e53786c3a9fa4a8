"""No fix is offered as safe where one of the conditions fails under which it would change what a program does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from counter_examples import ALWAYS_UNSAFE, RULES, SILENT, Condition, Program

from perflint.engine import Options, check
from perflint.finding import Applicability, Finding
from perflint.project.discovery import discover
from perflint.project.settings import load_settings
from perflint.rule_api.registry import load_rules
from perflint.testing import find_cases

FIXTURES = Path(__file__).parents[2] / "fixtures"
#: What its fix removes is a comment for perflint.
COMMENTS_ONLY = {"TPL001"}
CONDITIONS = [(code, program, condition) for code, program in RULES.items() for condition in program.conditions]


def found(code: str, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Sequence[Finding]:
    (folder / "train.py").write_text(text, encoding="utf-8")
    (folder / "pyproject.toml").write_text("[tool.perflint]\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    settings = load_settings(Path())
    rules = [rule() for rule in load_rules() if rule.code == code]
    report = check(discover(["."], settings), Options(settings, rules, cache=False))
    assert not report.errors
    return [finding for finding in report.findings if finding.code == code]


@pytest.mark.parametrize(("code", "program"), RULES.items(), ids=RULES)
def test_the_fix_is_safe_while_no_condition_fails(
    code: str, program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (finding,) = found(code, program.text, tmp_path, monkeypatch)
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.SAFE


@pytest.mark.parametrize(
    ("code", "program", "condition"), CONDITIONS, ids=[f"{code} {condition.why}" for code, _, condition in CONDITIONS]
)
def test_a_condition_that_fails_takes_the_safety_away(
    code: str, program: Program, condition: Condition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert program.text.count(condition.old) >= 1
    text = program.text.replace(condition.old, condition.new, 1)
    findings = found(code, text, tmp_path, monkeypatch)
    offered = [finding.fix for finding in findings if finding.fix is not None]
    assert not [fix for fix in offered if fix.applicability is Applicability.SAFE]
    said = [fix.reason for fix in offered] or ["no fix" if findings else SILENT]
    assert all(bool(reason) == bool(condition.reason) and condition.reason in reason for reason in said), said


OTHER_FILES = {
    "a model of another file": (
        "import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        {asks}\n\nslope = Net()\n"
    ),
    "what a helper calls": "import torch\n\ndef slope(x):\n    {asks}\n",
}


@pytest.mark.parametrize("text", OTHER_FILES.values(), ids=OTHER_FILES)
def test_gradients_are_asked_for_two_files_away(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "far.py").write_text(text.format(asks="return torch.autograd.grad(x.sum(), x)"), encoding="utf-8")
    (tmp_path / "near.py").write_text("from far import slope\n\ndef score(x):\n    return slope(x)\n", encoding="utf-8")
    program = RULES["TPL308"].text.replace("import torch\n", "import torch\nfrom near import score\n", 1)
    program = program.replace("        right +=", "        score(inputs)\n        right +=")
    assert found("TPL308", program, tmp_path, monkeypatch) == []


def test_every_rule_with_a_fix_has_its_conditions_or_is_always_unsafe() -> None:
    """What is looked at is the text of rules and of what builds their fixes: one that never names the class
    cannot offer a safe fix.
    """
    rules = FIXTURES.parent / "rules"
    helpers = {path.stem: path.read_text(encoding="utf-8") for path in (rules / "_fixes").glob("*.py")}
    texts = []
    for path in rules.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        named = re.findall(r"^from \._fixes\.(\w+) import", text, re.MULTILINE)
        texts.append(text + "".join(helpers[name] for name in named if " Fix(" in helpers[name]))
    codes = {text: re.search(r'^    code, name = "(\w+)"', text, re.MULTILINE) for text in texts}
    fixing = {code[1] for text, code in codes.items() if code and "Fix(" in text} - COMMENTS_ONLY
    able = {code[1] for text, code in codes.items() if code and "Applicability.SAFE" in text} - COMMENTS_ONLY
    assert able == set(RULES)
    assert fixing - able <= ALWAYS_UNSAFE
    assert not able & ALWAYS_UNSAFE


def test_no_example_of_an_unsafe_rule_is_fixed_safely() -> None:
    safe = [case for case in find_cases(FIXTURES) if case.result(Applicability.SAFE).exists()]
    own = {case.group.partition("-")[0] for case in safe if case.path.stem == "example"}
    assert not own & ALWAYS_UNSAFE
