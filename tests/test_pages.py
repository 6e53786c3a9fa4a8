"""The pages of the rules: made from the rules and their examples, and current where they are kept.

Those in docs/rules are made by `perflint rules --pages docs/rules`, or here with `PERFLINT_BLESS=1`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from perflint.cli import app
from perflint.cli.pages import INDEX, pages, write_pages
from perflint.rule_api.page import HEADINGS, REQUIRED, file_of
from perflint.rule_api.registry import load_rules

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "docs" / "rules"
RULES = load_rules()
MADE = pages(RULES)


def test_every_rule_has_its_page_and_the_index_leads_there() -> None:
    assert set(MADE) == {INDEX, *map(file_of, RULES)}
    assert re.findall(r"\]\((TPL\S+\.md)\)", MADE[INDEX]) == [file_of(rule) for rule in RULES]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_page_says_all_there_is_to_say(rule: type) -> None:
    page = MADE[file_of(rule)]
    headings = re.findall(r"^## (.+)$", page, re.MULTILINE)
    assert headings[-1] == "Suppression"
    assert headings[:-1] == [heading for heading in HEADINGS if heading in headings]
    assert {*REQUIRED, "Example"} <= set(headings)
    assert "expect:" not in page
    assert page.count("```") % 2 == 0
    assert f"]({INDEX})" in page


def test_pages_that_are_kept_are_current() -> None:
    if os.environ.get("PERFLINT_BLESS"):
        write_pages(KEPT, RULES)
    # Made now: they show results of fixes, which other tests of a run that blesses have just written.
    made = pages(RULES)
    assert {file.name: file.read_text(encoding="utf-8") for file in KEPT.glob("*.md")} == made


def test_writing_takes_pages_of_lost_rules_away_and_nothing_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["rules", "--pages", str(tmp_path / "rules")]) == 0
    assert f"{len(MADE)} pages" in capfd.readouterr().out
    some = (tmp_path / "rules" / file_of(RULES[0])).read_text()
    (tmp_path / "rules" / "TPL999-gone.md").write_text(some)
    (tmp_path / "rules" / "how-to.md").write_text("# By hand\n")
    assert app.run(["rules", "--pages", str(tmp_path / "rules")]) == 0
    assert {file.name for file in (tmp_path / "rules").iterdir()} == {*MADE, "how-to.md"}


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert app.run(["rules", "--pages", str(tmp_path / "file" / "rules")]) == 2
    assert "cannot be written" in capfd.readouterr().err
