"""No program that was written to break a safe fix prints anything else, or ends otherwise, once it is fixed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

pytest.importorskip("torch")
pytest.importorskip("numpy")

from programs import FIXED, NO_SAFE_FIX, Program, Runner, find_programs, fix, wrong_with

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="programs run in forked children")
PROGRAMS = find_programs()


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    runner = Runner()
    yield runner
    runner.close()


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_a_safe_fix_changes_nothing_that_can_be_seen(program: Program, runner: Runner) -> None:
    wrong = list(wrong_with(program, fix(program), runner))
    assert not wrong, "\n".join(wrong)


def test_no_two_programs_have_one_name() -> None:
    names = list(map(str, PROGRAMS))
    assert len(names) == len(set(names))


def test_soundness_is_not_bought_by_silence() -> None:
    """Of each rule that has programs, some are ordinary code that does get its fix."""
    codes = {program.code for program in PROGRAMS}
    fixed = {program.code for program in PROGRAMS if program.expect == FIXED}
    assert codes == fixed
    assert sum(program.expect == FIXED for program in PROGRAMS) * 8 >= len(PROGRAMS)


def test_a_fix_that_changes_a_program_is_seen(runner: Runner) -> None:
    program = Program("TPL308", "by hand", {"main.py": "import torch\nprint(torch.ones(1) * 2)\n"})
    other = {"main.py": "import torch\nprint(torch.ones(1) * 3)\n"}
    fails = {"main.py": "raise KeyError('gone')\n"}
    from programs import Fixed

    assert not list(wrong_with(program, Fixed(program.texts, frozenset()), runner))
    assert "3." in next(wrong_with(program, Fixed(other, frozenset({"TPL308"})), runner))
    assert "KeyError" in next(wrong_with(program, Fixed(fails, frozenset({"TPL308"})), runner))
    program.expect = FIXED
    assert list(wrong_with(program, Fixed(program.texts, frozenset()), runner)) == ["no safe fix is made"]
    program.expect = NO_SAFE_FIX
    assert "is offered" in next(wrong_with(program, Fixed(program.texts, frozenset({"TPL308"})), runner))


def test_a_late_copy_sees_what_is_written_meanwhile(runner: Runner) -> None:
    text = (
        "import torch\na = torch.ones(1)\nb = a.to('cuda', non_blocking={})\n"
        "a.zero_()\nprint((b + 0).item(), torch.stack([b]).item())\n"
    )
    said = [runner.run({"main.py": text.format(how)}, ("late copies",)).printed for how in (True, False)]
    assert said == ["0.0 0.0\n", "1.0 1.0\n"]


def test_a_program_that_hangs_is_ended(runner: Runner) -> None:
    assert runner.run({"main.py": "import time\ntime.sleep(60)\n"}, seconds=0.3).status == -1
