"""What a user reads is plain technical English: short messages, and no word of the dialect that perflint once had."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from perflint.rule_api.page import page_of
from perflint.rule_api.registry import load_rules
from perflint.testing import Case, find_cases, findings_of

ROOT = Path(__file__).parent.parent
#: A span of code counts as one word: how long an expression is, is its author's business.
_CODE = re.compile(r"`[^`]*`")
_MOST_WORDS = 25
#: Words of the old dialect, and what the field says instead.
_DIALECT = re.compile(
    r"\b(?:turns? of (?:a|the|this) loop|(?:on|in|at) (?:each|every|any) turn|(?:is|are|was|be) told|(?:is|are) silent|"
    r"keeps? silent|walk(?:s|ed)? back|made anew|built anew|asked? anew|mend(?:s|ed|ing)?|trifl(?:e|es|ing)|"
    r"hands? back|gives? back|hands? over|handed over|whoever|nobody|somebody|person's look|the host waits there|"
    r"waits? for the device|as long as it lives|lives on|kept table)\b"
)


def dialect_in(text: str) -> list[str]:
    return sorted({found[0] for found in _DIALECT.finditer(" ".join(_CODE.sub("x", text).split()).lower())})


def test_the_dialect_is_recognized() -> None:
    assert dialect_in("It runs on\nevery turn, which is told by `mend`.") == ["is told", "on every turn"]
    assert dialect_in("The order of the calls in every iteration.") == []


@pytest.mark.parametrize("folder", sorted((ROOT / "fixtures").glob("TPL*")), ids=lambda folder: folder.name)
def test_findings_are_short_and_plain(folder: Path) -> None:
    cases: list[Case] = find_cases(folder)
    wrong = []
    for finding in (finding for case in cases if case.fires for finding in findings_of(case)):
        if len(_CODE.sub("x", finding.message).split()) > _MOST_WORDS:
            wrong.append(f"{finding.code}: more than {_MOST_WORDS} words: {finding.message}")
        fix = (finding.fix.title, finding.fix.reason) if finding.fix is not None else ()
        for text in (finding.message, finding.advice, *fix):
            wrong += [f"{finding.code}: {word!r} in: {text}" for word in dialect_in(text)]
    assert sorted(set(wrong)) == []


@pytest.mark.parametrize("rule", load_rules(), ids=lambda rule: rule.code)
def test_pages_are_plain(rule: type) -> None:
    page = page_of(rule)
    assert dialect_in("\n".join([page.summary, *page.sections.values()])) == []


@pytest.mark.parametrize(
    "command", ["", "check", "fix", "baseline", "config", "rules", "explain", "verify", "observe", "server", "clean"]
)
def test_help_is_plain(command: str) -> None:
    words = [sys.executable, "-m", "perflint", *([command] if command else []), "--help"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert dialect_in(shown) == []


#: Written pages that are not plain yet, with the number of their words of the dialect: it may only fall.
_NOT_YET = {
    "docs/accuracy.md": 1,
    "docs/impact.md": 2,
    "docs/observed-programs.md": 1,
    "docs/precision.md": 4,
    "docs/rivals.md": 2,
    "docs/speed.md": 6,
    "docs/waits.md": 1,
}


@pytest.mark.parametrize("file", ["README.md", *(f"docs/{file.name}" for file in sorted((ROOT / "docs").glob("*.md")))])
def test_written_pages_are_plain(file: str) -> None:
    found = dialect_in((ROOT / file).read_text(encoding="utf-8"))
    assert len(found) <= _NOT_YET.get(file, 0), found
