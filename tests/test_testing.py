"""The fixture harness itself, as a plug-in's author meets it: what it accepts, and what it complains about."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.testing import Case, FixtureError, Marker, Verb, check_case, find_cases, read_markers

HOT = """\
import gc

def train(loader, model, optimizer):
    for batch in loader:
        model(batch).backward()
        optimizer.step()
        gc.collect(){marker}
"""


def make(tmp_path: Path, files: dict[str, str], group: str = "TPL303-gc-in-hot-loop") -> list[Case]:
    for name, text in files.items():
        file = tmp_path / "fixtures" / group / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return find_cases(tmp_path / "fixtures")


def complaints(case: Case) -> str:
    with pytest.raises(AssertionError) as caught:
        check_case(case, bless=False)
    return str(caught.value)


def test_markers_are_read_and_taken_out() -> None:
    text = 'a()  # why  # expect: TPL201 "in a loop", TPL209\r\nb()  # heat: step # false: TPL1\nc()\n'
    marked = read_markers(text)
    assert marked.text == "a()  # why\r\nb()\nc()\n"
    assert marked.each == (
        Marker(1, Verb.EXPECT, "TPL201", "in a loop"),
        Marker(1, Verb.EXPECT, "TPL209"),
        Marker(2, Verb.HEAT, "step"),
        Marker(2, Verb.FALSE, "TPL1"),
    )


def test_markers_of_values_are_only_taken_out() -> None:
    marked = read_markers("x = f(y)  # kind: x tensor cuda  # expect: TPL201\n")
    assert marked.text == "x = f(y)\n"
    assert [marker.value for marker in marked.each] == ["TPL201"]


def test_a_marker_may_claim_an_impact(tmp_path: Path) -> None:
    (case,) = make(tmp_path, {"example.py": HOT.format(marker="  # expect: TPL303 (low)")})
    assert [marker.impact for _, marked in case.read() for marker in marked.each] == ["low"]
    assert "example.py:7: TPL303 is of high impact, not of low" in complaints(case)


@pytest.mark.parametrize("comment", ["# expect:", "# expect: TPL201 TPL202", '# expect: TPL201 "open', "# heat: step,"])
def test_a_marker_that_does_not_read_is_an_error(comment: str) -> None:
    with pytest.raises(FixtureError, match=r"here\.py:2: cannot read the marker"):
        read_markers(f"\nx = 1  {comment}\n", "here.py")


def test_files_and_folders_are_cases_and_their_results_are_not(tmp_path: Path) -> None:
    files = [
        "b.py",
        "b.fixed.py",
        "a/train.py",
        "a.unsafe/train.py",
        "measure.py",
        "run.py",
        "__pycache__/b.py",
        "notes.md",
    ]
    cases = make(tmp_path, dict.fromkeys(files, ""))
    assert [str(case) for case in cases] == ["TPL303-gc-in-hot-loop/a", "TPL303-gc-in-hot-loop/b"]


def test_a_result_without_its_case_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FixtureError, match=r"old\.fixed\.py belongs to no case"):
        make(tmp_path, {"new.py": "", "old.fixed.py": ""})


def test_a_finding_that_nobody_expects_fails(tmp_path: Path) -> None:
    (case,) = make(tmp_path, {"example.py": HOT.format(marker="")})
    assert "example.py:7: TPL303 is unexpected" in complaints(case)


def test_an_expected_finding_that_does_not_come_fails(tmp_path: Path) -> None:
    (case,) = make(tmp_path, {"example.py": "import gc\ngc.collect()  # expect: TPL303\n"})
    assert "example.py:2: TPL303 is not found" in complaints(case)


def test_the_message_is_compared(tmp_path: Path) -> None:
    (case,) = make(tmp_path, {"example.py": HOT.format(marker='  # expect: TPL303 "of the moon"')})
    assert "TPL303 does not say 'of the moon'" in complaints(case)


def test_a_known_missed_alarm_fails_once_it_is_found(tmp_path: Path) -> None:
    (case,) = make(tmp_path, {"example.py": HOT.format(marker="  # missed: TPL303")})
    assert "TPL303 is found now" in complaints(case)


def test_a_known_false_alarm_fails_once_it_is_gone(tmp_path: Path) -> None:
    (case,) = make(tmp_path, {"example.py": "x = 1  # false: TPL303\n"})
    assert "TPL303 is no longer reported" in complaints(case)


def test_findings_of_other_rules_show(tmp_path: Path) -> None:
    text = HOT.format(marker="  # expect: TPL303").replace("model(batch)", "torch.cuda.empty_cache(); model(batch)")
    (case,) = make(tmp_path, {"example.py": f"import torch\n{text}"})
    assert "TPL304 is unexpected" in complaints(case)


def test_heat_is_compared_on_functions_and_lines(tmp_path: Path) -> None:
    text = (
        "def log(loss):  # heat: epoch\n    pass\n\n"
        "def train(loader, model, optimizer):  # heat: once\n"
        "    for batch in loader:\n        loss = model(batch)  # heat: step\n"
        "        loss.backward()\n        optimizer.step()\n        log(loss)\n"
    )
    (case,) = make(tmp_path, {"example.py": text}, group="_engine")
    assert complaints(case).splitlines()[1:] == ["example.py:1: the heat is step, not epoch"]


def test_cases_of_the_engine_compare_findings_only_when_they_mark_one(tmp_path: Path) -> None:
    (case,) = make(tmp_path, {"example.py": HOT.format(marker="")}, group="_engine")
    check_case(case, bless=False)


def test_a_program_of_several_files_is_one_case(tmp_path: Path) -> None:
    train = HOT.format(marker="").replace("import gc", "from pkg.memory import tidy").replace("gc.collect", "tidy")
    memory = "import gc\n\ndef tidy():  # heat: step\n    gc.collect()\n"
    (case,) = make(tmp_path, {"app/train.py": train, "app/pkg/memory.py": memory})
    assert "pkg/memory.py:4: TPL303 is unexpected" in complaints(case)


def test_fixes_are_written_and_then_compared(tmp_path: Path) -> None:
    (case,) = make(tmp_path, {"example.py": HOT.format(marker="  # expect: TPL303")})
    target = case.path.with_name("example.unsafe.py")
    assert "example.unsafe.py is missing" in complaints(case)
    check_case(case, bless=True)
    assert "gc.collect()" not in target.read_text()
    check_case(case, bless=False)
    target.write_text(target.read_text().replace("batch in", "items in"))
    assert "-    for items in loader:" in complaints(case)


def test_a_result_that_no_fix_gives_fails(tmp_path: Path) -> None:
    (case,) = make(tmp_path, {"example.py": "x = 1\n", "example.fixed.py": "x = 1\n"})
    assert "there is nothing more to fix" in complaints(case)
    check_case(case, bless=True)
    assert not case.path.with_name("example.fixed.py").exists()


def test_nothing_around_the_fixtures_leaks_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.perflint]\nignore = ["TPL303"]\n')
    monkeypatch.chdir(tmp_path)
    (case,) = make(tmp_path, {"example.py": HOT.format(marker="")})
    assert "TPL303 is unexpected" in complaints(case)
    assert Path.cwd() == tmp_path
