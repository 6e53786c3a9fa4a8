"""Rules are short and files have one reason each: how long they may be. Lower a limit when there is room below it."""

from __future__ import annotations

import statistics
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: Lines of a rule's module, its page included.
LONGEST_RULE, MEDIAN_RULE = 250, 120
#: Lines of all that rules share.
SHARED = 2500
#: Lines of an engine's file.
LONGEST = 500


def _lines(file: Path) -> int:
    return len(file.read_text("utf-8").splitlines())


def test_rules_are_short() -> None:
    lengths = {file.name: _lines(file) for file in (ROOT / "rules").glob("*.py") if file.name != "__init__.py"}
    longest = max(lengths, key=lambda name: lengths[name])
    assert lengths[longest] <= LONGEST_RULE, f"rules/{longest}: move what it works out into the engine"
    assert statistics.median(lengths.values()) <= MEDIAN_RULE, "rules grow: move what they work out into the engine"
    assert sum(map(_lines, (ROOT / "rules" / "_shared").glob("*.py"))) <= SHARED


def test_engine_files_have_one_reason_each() -> None:
    lengths = {file.relative_to(ROOT).as_posix(): _lines(file) for file in (ROOT / "perflint").rglob("*.py")}
    wrong = {path: lines for path, lines in lengths.items() if lines > LONGEST}
    assert not wrong, "cut these in two along what they are for"
