"""The README shows what its commands print, and its guide's example does what it says.

With `PERFLINT_BLESS=1` in the environment the printed blocks are rewritten instead of compared.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from perflint.registry import RulePackage, collect, load_rules
from perflint.rule import Tier
from perflint.testing import check_case, find_cases

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "fixtures" / "sample_project"
FILE = ROOT / "README.md"
README = FILE.read_text(encoding="utf-8")

#: What stands between `<!-- NAME -->` and `<!-- end of NAME -->`: its fence, and the command that prints it.
PRINTED = {
    "finding": ("text", ["check", "--select", "deepcopy-state-dict", "callbacks.py"]),
    "json": ("json", ["check", "--select", "TPL304", "--output-format", "json", "engine.py"]),
    "rules": ("", ["rules", "--output-format", "markdown"]),
}


def printed(arguments: list[str]) -> str:
    command = [sys.executable, "-m", "perflint", *arguments]
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=SAMPLE, env=environment, check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", PRINTED)
def test_the_readme_shows_what_is_printed(name: str) -> None:
    fence, arguments = PRINTED[name]
    wanted = f"```{fence}\n{printed(arguments).strip()}\n```" if fence else printed(arguments).strip()
    text = FILE.read_text(encoding="utf-8")
    before, start, rest = text.partition(f"<!-- {name} -->\n")
    shown, end, after = rest.partition(f"<!-- end of {name} -->")
    assert start
    assert end
    if os.environ.get("PERFLINT_BLESS"):
        FILE.write_text(f"{before}{start}{wanted}\n{end}{after}", encoding="utf-8")
    else:
        assert shown.strip() == wanted, f"`perflint {' '.join(arguments)}` prints something else now"


def test_the_sample_project_gives_what_is_promised() -> None:
    found = printed(["check", "--output-format", "json", "."])
    assert found.count('"code"') >= 12
    assert '"errors": []' in found


def test_the_test_line_is_what_ci_takes_from_the_readme() -> None:
    line = README.partition("<!-- test line -->\n")[2].partition("<!-- end -->")[0].strip()
    assert line.startswith("python3 -m venv .venv && ")
    assert line.endswith("-m pytest")


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
    check_case(silent, rules=[*(rule for rule in load_rules() if rule.tier is Tier.CORE), *rules], bless=False)
    check_case(example, rules=[*(rule for rule in load_rules() if rule.tier is Tier.CORE), *rules], bless=True)
    check_case(example, rules=[*(rule for rule in load_rules() if rule.tier is Tier.CORE), *rules], bless=False)
    assert "sleep" not in (group / "example.unsafe.py").read_text().partition("\n\n\n")[2]
