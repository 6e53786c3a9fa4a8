"""The README's own examples do what it says they do."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from perflint.registry import RulePackage, collect, load_rules
from perflint.testing import check_case, find_cases

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(first_line: str) -> str:
    """The fenced Python block that begins with `first_line`, without its indentation."""
    for fenced in re.findall(r"^ *```python\n(.*?)^ *```", README, re.DOTALL | re.MULTILINE):
        text = textwrap.dedent(fenced)
        if text.startswith(first_line):
            return text
    raise AssertionError(f"README.md shows no block that begins with {first_line!r}")


def test_the_rule_of_the_guide_passes_its_own_fixtures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "guide_rules"
    package.mkdir()
    (package / "__init__.py").touch()
    rule = block('"""TPL999')
    # A plug-in's code, since the module stands outside `rules/`.
    (package / "sleep_in_hot_loop.py").write_text(rule.replace("TPL999", "GUIDE999"))
    monkeypatch.syspath_prepend(tmp_path)
    group = tmp_path / "fixtures" / "GUIDE999-sleep-in-hot-loop"
    group.mkdir(parents=True)
    (group / "example.py").write_text(block('"""A pause').replace("TPL999", "GUIDE999"))
    (group / "between_epochs.py").write_text(block("import time"))

    rules = collect([RulePackage("guide_rules", "guide")])
    assert [rule.code for rule in rules] == ["GUIDE999"]
    silent, example = find_cases(group)
    check_case(silent, rules=[*load_rules(), *rules], bless=False)
    check_case(example, rules=[*load_rules(), *rules], bless=True)
    check_case(example, rules=[*load_rules(), *rules], bless=False)
    assert "sleep" not in (group / "example.unsafe.py").read_text().partition("\n\n\n")[2]
