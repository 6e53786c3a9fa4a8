"""The project's own training programs are observed, and `check` is held against what happened."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import own_programs
import pytest

pytest.importorskip("torch", minversion="2.9")


@pytest.mark.skipif(sys.platform == "win32", reason="each program runs in a fork")
def test_check_finds_at_least_what_it_found_and_says_nothing_wrong(tmp_path: Path) -> None:
    kept = json.loads(own_programs.RESULT.read_text())
    score = tmp_path / "score.json"
    # A process of its own: children of one that ran a backward pass cannot run another.
    command = [sys.executable, own_programs.__file__, str(tmp_path / "seen"), "--lines", "--write", str(score)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    made = json.loads(score.read_text())

    def total(of: dict[str, Any], name: str) -> int:
        return sum(rule[name] for rule in of["rules"].values())

    assert (made["observed"], made["failed"]) == (kept["observed"], 0), run.stderr
    waited = total(kept, "found") + total(kept, "missed")
    assert total(made, "found") + total(made, "missed") == waited, f"other lines waited\n{run.stdout}"
    assert total(made, "found") >= total(kept, "found"), f"found less\n{run.stdout}"
    assert total(made, "refuted") <= total(kept, "refuted"), run.stdout
