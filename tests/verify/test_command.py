"""A command in a copy of the tree: its environment, what it prints, and which lines it runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from perflint.verify.command import Command, CommandSide
from perflint.verify.measuring import Plan
from perflint.verify.overlay import Overlay
from perflint.verify.processes import TrialError


def _side(tmp_path: Path, script: str, result: str = "", **watched: set[int]) -> CommandSide:
    origin = tmp_path / "origin"
    origin.mkdir()
    (origin / "work.py").write_text("def one():\n    return 1\n\n\ndef two():\n    return 2\n")
    (origin / "script.py").write_text(script)
    overlay = Overlay(origin, tmp_path / "copy")
    overlay.copy()
    lines = {f"{name}.py": frozenset(numbers) for name, numbers in watched.items()}
    return CommandSide(Command((sys.executable, "script.py"), result=result), overlay, Path(), tmp_path, lines)


def test_the_untimed_run_shows_which_lines_it_ran(tmp_path: Path) -> None:
    side = _side(tmp_path, "import work\nwork.one()\n", work={2, 6})
    seen = side.start(Plan(timeout=60), tmp_path / "kept", keeps=True).facts.seen
    assert seen is not None
    assert seen.is_known
    assert seen.lines == {"work.py": frozenset({2})}


def test_a_timed_run_is_not_watched(tmp_path: Path) -> None:
    side = _side(tmp_path, "import os\nassert 'PERFLINT_VERIFY_TRACE' not in os.environ\n", work={2})
    assert side.start(Plan(timeout=60), None, keeps=False).facts.seen is None


@pytest.mark.parametrize(("threads", "said"), [(1, "1 1 1"), (3, "3 3 3"), (None, "7 None None")])
def test_all_pools_have_as_many_threads_as_the_plan_says(
    threads: int | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    for name in ("MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    names = "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"
    script = f"import os\nprint('threads', *(os.environ.get(name) for name in {names}))\n"
    reference = tmp_path / "kept"
    _side(tmp_path, script, "threads (.*)").start(Plan(timeout=60, threads=threads), reference, keeps=True)
    assert reference.read_text() == said


def test_what_a_failing_command_printed_goes_with_the_error(tmp_path: Path) -> None:
    side = _side(tmp_path, "print('loading')\nraise ValueError('no such file')\n")
    with pytest.raises(TrialError, match="failed with exit code 1: ValueError: no such file") as caught:
        side.start(Plan(timeout=60), tmp_path / "kept", keeps=True)
    assert "loading" in caught.value.trace
    assert "Traceback" in caught.value.trace


def test_without_a_result_nothing_is_compared_and_that_is_said(tmp_path: Path) -> None:
    facts = _side(tmp_path, "print(1)\n").start(Plan(timeout=60), tmp_path / "kept", keeps=True).facts
    assert (facts.equal, facts.unread) == (None, ("there is no --result",))
