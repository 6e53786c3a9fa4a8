"""The project's own training programs are observed, and `check` is held against what happened."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import own_programs
import pytest

pytest.importorskip("torch", minversion="2.9")


@pytest.mark.skipif(sys.platform == "win32", reason="each program runs in a fork")
def test_check_finds_at_least_what_it_found_and_says_nothing_wrong(tmp_path: Path) -> None:
    kept = json.loads(own_programs.RESULT.read_text())
    made = own_programs.scored(tmp_path)
    lines = "\n".join((*made.lines_missed, *made.findings_wrong))
    assert (made.items, made.failed) == (kept["observed"], 0), lines
    found, missed = (sum(rule[name] for rule in kept["rules"].values()) for name in ("found", "missed"))
    assert sum(made.found.values()) + sum(made.missed.values()) == found + missed, f"other lines waited\n{lines}"
    assert sum(made.found.values()) >= found, f"found less; `own_programs.py --lines` says where\n{lines}"
    assert sum(made.wrong.values()) <= sum(rule["refuted"] for rule in kept["rules"].values()), lines
