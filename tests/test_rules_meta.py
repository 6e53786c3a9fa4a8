"""What holds for every built-in rule: its names agree, its page is whole, its examples fire and keep silent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perflint.rule_api.page import HEADINGS, REQUIRED, page_of
from perflint.rule_api.registry import load_rules
from perflint.rule_api.rule import Rule
from perflint.testing import Case, find_cases

ROOT = Path(__file__).parent.parent
RULES = [rule for rule in load_rules() if rule.code.startswith("TPL")]
#: Rules whose subject is no function of PyTorch or of a library that the page could refer to.
WITHOUT_REFERENCES = {"TPL001"}
#: Bad patterns that are the lack of something.
ABSENCES = {"no-mixed-precision"}
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)


def folder_of(rule: type[Rule]) -> Path:
    return ROOT / "fixtures" / f"{rule.code}-{rule.name}"


def cases_of(rule: type[Rule]) -> list[Case]:
    return find_cases(folder_of(rule)) if folder_of(rule).is_dir() else []


def test_there_are_rules() -> None:
    assert RULES


def test_codes_and_names_are_unique() -> None:
    assert len({rule.code for rule in RULES}) == len({rule.name for rule in RULES}) == len(RULES)


def test_every_module_in_the_folder_brings_a_rule() -> None:
    modules = {file.stem for file in (ROOT / "rules").glob("*.py") if not file.stem.startswith("_")}
    assert modules == {rule.name.replace("-", "_") for rule in RULES}


@each_rule
def test_code_name_and_module_agree(rule: type[Rule]) -> None:
    assert re.fullmatch(r"TPL\d\d\d", rule.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    assert not rule.name.startswith("no-") or rule.name in ABSENCES, "a rule is named for the bad pattern"
    assert rule.__module__.rpartition(".")[2] == rule.name.replace("-", "_")


@each_rule
def test_the_page_has_every_heading_in_order(rule: type[Rule]) -> None:
    sections = page_of(rule).sections
    assert list(sections) == [heading for heading in HEADINGS if heading in sections]
    assert set(sections) >= set(REQUIRED)
    assert ("References" in sections) == (rule.code not in WITHOUT_REFERENCES)
    assert rule.summary().endswith("."), "the first line is a whole sentence"
    assert len(rule.summary()) <= 120


@each_rule
def test_what_is_not_reported_is_a_list_and_references_are_addresses(rule: type[Rule]) -> None:
    sections = page_of(rule).sections
    assert all(line.startswith(("- ", "  ")) for line in sections["Not reported"].splitlines())
    for reference in sections.get("References", "").split("\n- "):
        assert not reference or re.search(r":\s+https://\S+$", reference), reference


@each_rule
def test_the_fixtures_fire_and_keep_silent(rule: type[Rule]) -> None:
    cases = cases_of(rule)
    assert any(case.path.stem == "example" for case in cases), f"{folder_of(rule).name}/example.py documents the rule"
    firing = [
        case
        for case in cases
        if any(marker.value == rule.code and marker.expected for _, item in case.read() for marker in item.each)
    ]
    assert firing, "no case expects a finding of this rule"
    assert len(firing) < len(cases), "no case shows what only looks like it"


@each_rule
def test_the_example_has_a_caption(rule: type[Rule]) -> None:
    example = folder_of(rule) / "example.py"
    files = [example] if example.is_file() else sorted(folder_of(rule).glob("example/*.py"))
    assert any(file.read_text(encoding="utf-8").startswith('"""') for file in files)


def test_every_fixture_folder_has_a_rule() -> None:
    folders = {path.name for path in (ROOT / "fixtures").glob("TPL*") if path.is_dir()}
    assert folders <= {folder_of(rule).name for rule in RULES}
