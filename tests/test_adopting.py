"""Adopting perflint on old code: the baseline, findings on changed lines only, and comments written by the tool."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from perflint.cli import app

HOT = """import gc


def train(model, loader, optimizer):
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()
        gc.collect()
"""
AGAIN = "        gc.collect()\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "train.py").write_text(HOT)
    return tmp_path


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[int]:
    """Lines of what is found."""
    capsys.readouterr()
    app.run(["check", "--select", "TPL303,TPL001", "--output-format", "json", *arguments])
    return [one["line"] for one in json.loads(capsys.readouterr().out)["findings"]]


# The baseline

KNOWN = ("--baseline", "perflint-baseline.json")


def test_what_the_baseline_knows_is_not_reported_and_new_findings_are(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["baseline", "write"]) == 0
    assert "1 finding written to perflint-baseline.json" in capsys.readouterr().out
    assert app.run(["check", *KNOWN]) == 0
    assert "left out: 1 in the baseline" in capsys.readouterr().out
    (project / "train.py").write_text("# moved down\n\n" + HOT + AGAIN)
    assert lines(capsys, *KNOWN) == [11]
    assert lines(capsys) == [10]  # the second is a place of the same finding


def test_the_configuration_names_it_and_it_can_be_switched_off(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "pyproject.toml").write_text('[tool.perflint]\nbaseline = "known.json"\n')
    assert app.run(["baseline", "write"]) == 0
    assert (project / "known.json").exists()
    assert lines(capsys) == []
    assert lines(capsys, "--no-baseline") == [8]


def test_it_means_the_same_from_any_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "pkg").mkdir()
    (project / "train.py").rename(project / "pkg" / "train.py")
    assert app.run(["baseline", "write"]) == 0
    monkeypatch.chdir(project / "pkg")
    assert lines(capsys, "--baseline", "../perflint-baseline.json") == []


def test_a_line_that_is_touched_is_new(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["baseline", "write"]) == 0
    (project / "train.py").write_text(HOT.replace("gc.collect()", "gc.collect()  # why"))
    assert lines(capsys, *KNOWN) == [8]


def test_what_is_gone_is_shown_and_pruned(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "other.py").write_text(HOT)
    assert app.run(["baseline", "write"]) == 0
    (project / "train.py").write_text(HOT.replace(AGAIN, ""))
    (project / "other.py").unlink()
    capsys.readouterr()
    assert app.run(["baseline", "show"]) == 0
    shown = capsys.readouterr().out
    assert "gone: train.py: TPL303 gc.collect()" in shown
    assert shown.splitlines()[-1] == "2 known findings, 2 of them no longer found; 0 new ones"
    assert app.run(["baseline", "prune"]) == 0
    assert "2 findings deleted" in capsys.readouterr().out
    assert json.loads((project / "perflint-baseline.json").read_text())["findings"] == []


def test_entries_of_files_that_were_not_looked_at_stay(project: Path) -> None:
    (project / "other.py").write_text(HOT)
    assert app.run(["baseline", "write"]) == 0
    (project / "other.py").write_text("x = 1\n")
    (project / "train.py").write_text(HOT + AGAIN)
    assert app.run(["baseline", "write", "train.py"]) == 0
    assert app.run(["baseline", "prune", "train.py"]) == 0
    listed = json.loads((project / "perflint-baseline.json").read_text())["findings"]
    assert [(one["path"], one["count"]) for one in listed] == [("other.py", 1), ("train.py", 2)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "perflint baseline write"),
        ("{", "not a baseline"),
        ("[]", "not a baseline"),
        ('{"version": 9}', "delete it, and run 'perflint baseline write' again"),
    ],
)
def test_a_baseline_that_does_not_read_is_two(
    text: str | None, words: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (project / "known.json").write_text(text)
    assert app.run(["check", "--baseline", "known.json"]) == 2
    assert words in capsys.readouterr().err
    if text is not None:  # what is there already is nobody's to overwrite: it may be no baseline at all
        assert app.run(["baseline", "write", "--baseline", "known.json"]) == 2
        assert words in capsys.readouterr().err
        assert (project / "known.json").read_text() == text


@pytest.mark.parametrize("command", [["check", "--fix"], ["fix", "--apply"]])
def test_fixes_leave_known_findings_alone(command: list[str], project: Path) -> None:
    assert app.run(["baseline", "write"]) == 0
    (project / "train.py").write_text(HOT + "        gc.collect()  # again\n")
    assert app.run([*command, "--unsafe", "--select", "TPL303", *KNOWN]) == 1
    assert (project / "train.py").read_text() == HOT


# Changed lines


def git(*arguments: str) -> None:
    who = ("-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(project: Path) -> Path:
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    return project


def test_findings_on_changed_lines_only(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, "--changed-since", "HEAD") == []
    (repository / "train.py").write_text("# moved\n" + HOT + AGAIN)
    assert lines(capsys, "--changed-since", "HEAD") == [10]
    git("commit", "-qam", "second")
    assert lines(capsys, "--changed-since", "HEAD") == []
    assert lines(capsys, "--changed-since", "HEAD~1") == [10]


def test_what_is_left_out_is_said(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["check", "--changed-since", "HEAD"]) == 0
    assert "left out: 1 on unchanged lines" in capsys.readouterr().out


def test_what_was_unreadable_before_is_no_fault_of_the_change(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "old.py").write_text("print 'hello'\n")
    git("add", ".")
    git("commit", "-qm", "second")
    assert app.run(["check", "--changed-since", "HEAD"]) == 0
    assert "1 error in unchanged files" in capsys.readouterr().out

    (repository / "old.py").write_text("print 'hello', 'you'\n")
    assert app.run(["check", "--changed-since", "HEAD"]) == 2
    assert app.run(["check"]) == 2


def test_the_whole_program_is_still_known(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "train.py").write_text(HOT.replace("import gc", "import tidy").replace("gc.collect", "tidy.up"))
    git("commit", "-qam", "second")
    (repository / "tidy.py").write_text("import gc\n\n\ndef up():\n    gc.collect()\n")
    assert lines(capsys, "--changed-since", "HEAD", "tidy.py") == [5]


def test_a_file_git_does_not_know_is_new_and_a_renamed_one_is_not(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "new.py").write_text(HOT)
    assert lines(capsys, "--changed-since", "HEAD") == [8]
    (repository / "new.py").unlink()
    git("mv", "train.py", "renamed.py")
    (repository / "renamed.py").write_text(HOT + AGAIN)
    assert lines(capsys, "--changed-since", "HEAD") == [9]


def test_from_a_folder_of_the_repository(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "pkg").mkdir()
    git("mv", "train.py", "pkg/train.py")
    git("commit", "-qam", "moved")
    (repository / "pkg" / "train.py").write_text(HOT + AGAIN)
    monkeypatch.chdir(repository / "pkg")
    assert lines(capsys, "--changed-since", "HEAD") == [9]


def test_lines_of_a_notebook(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def write(*cells: str) -> None:
        listed: list[dict[str, Any]] = [{"cell_type": "code", "source": cell.splitlines(True)} for cell in cells]
        (repository / "n.ipynb").write_text(json.dumps({"cells": listed, "nbformat": 4}, indent=1))

    write(HOT)
    git("add", ".")
    git("commit", "-qm", "notebook")
    write("x = 1\n", HOT + AGAIN)
    assert lines(capsys, "--changed-since", "HEAD", "n.ipynb") == [9]


@pytest.mark.parametrize("revision", ["nonsense", "--output=x", "HEAD:train.py"])
def test_a_revision_that_is_none_is_two(revision: str, repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["check", f"--changed-since={revision}"]) == 2
    assert "names no commit" in capsys.readouterr().err


def test_without_a_repository_it_is_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["check", "--changed-since", "HEAD"]) == 2
    assert "not a git repository" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["check", "--fix"], ["fix", "--apply"]])
def test_fixes_of_changed_lines_only(command: list[str], repository: Path) -> None:
    (repository / "train.py").write_text(HOT + "        gc.collect()  # again\n")
    assert app.run([*command, "--unsafe", "--select", "TPL303", "--changed-since", "HEAD"]) == 1
    assert (repository / "train.py").read_text() == HOT


# Comments


def added(project: Path, text: str, *arguments: str) -> str:
    (project / "train.py").write_text(text)
    assert app.run(["check", "--select", "TPL303,TPL301,TPL001", "--add-ignores", *arguments]) == 0
    return (project / "train.py").read_text()


def test_comments_silence_what_is_found(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = HOT.replace("gc.collect()", "gc.collect()  # perflint: ignore[TPL303] for now")
    assert added(project, HOT, "--reason", "for\nnow") == wanted
    printed = capsys.readouterr()
    assert "suppressed 1 finding in 1 file" in printed.err
    assert "nothing found" in printed.out
    assert added(project, wanted) == wanted


LONG = "x" * 90


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("gc.collect()  # why", "gc.collect()  # why  # perflint: ignore[TPL303]"),
        ("gc.collect(\n        )", "# perflint: ignore[TPL303]\n        gc.collect(\n        )"),
        (f"gc.collect()  # {LONG}", f"# perflint: ignore[TPL303]\n        gc.collect()  # {LONG}"),
        (
            "gc.collect()  # perflint: ignore[TPL301] as it is",
            "gc.collect()  # perflint: ignore[TPL301, TPL303] as it is",
        ),
        (
            "gc.collect(); torch.cuda.empty_cache()",
            "gc.collect(); torch.cuda.empty_cache()  # perflint: ignore[TPL303, TPL304]",
        ),
        (
            "if gc.collect() > 3:\n            pass",
            "if gc.collect() > 3:  # perflint: ignore[TPL303]\n            pass",
        ),
        (
            "if model:\n            pass\n        elif gc.collect():\n            pass",
            "if model:\n            pass\n        elif gc.collect():  # perflint: ignore[TPL303]\n            pass",
        ),
        ("gc.collect()\\\n", "# perflint: ignore[TPL303]\n        gc.collect()\\\n"),
        (
            'print("""\n""", gc.collect())',
            '# perflint: ignore[TPL303]\n        print("""\n""", gc.collect())',
        ),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_where_the_comment_stands(project: Path, before: str, after: str, newline: str) -> None:
    text = HOT.replace("import gc", "import gc, torch")
    file = project / "train.py"
    file.write_bytes(text.replace("gc.collect()", before).replace("\n", newline).encode())
    app.run(["check", "--select", "TPL303,TPL304", "--add-ignores"])
    wanted = text.replace("gc.collect()", after).replace("\n", newline)
    assert file.read_bytes().decode() == wanted
    assert app.run(["check", "--select", "TPL303,TPL304"]) == 0


def test_two_rules_share_a_comment_where_they_share_a_statement(project: Path) -> None:
    text = HOT.replace("import gc", "import copy, gc").replace("gc.collect()", "f(gc.collect(),\n gc.collect(1))")
    changed = added(project, text)
    assert changed.count("perflint: ignore") == 1


def test_in_a_notebook(project: Path) -> None:
    raw = json.dumps({"cells": [{"cell_type": "code", "source": HOT.splitlines(True)}], "nbformat": 4}, indent=1)
    (project / "n.ipynb").write_text(raw)
    assert app.run(["check", "--select", "TPL303", "--add-ignores", "n.ipynb"]) == 0
    wanted = raw.replace("gc.collect()", "gc.collect()  # perflint: ignore[TPL303]")
    assert (project / "n.ipynb").read_text() == wanted


def test_a_stale_comment_is_reported_and_taken_away(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stale = HOT.replace(AGAIN, "        model.log()  # perflint: ignore[TPL303] for now\n")
    (project / "train.py").write_text(stale)
    assert lines(capsys) == [8]
    assert app.run(["check", "--fix", "--select", "TPL001,TPL303"]) == 1
    assert (project / "train.py").read_text() == HOT.replace("gc.collect", "model.log")


@pytest.mark.parametrize("arguments", [["--reason", "x"], ["--add-ignores", "-"], ["--baseline", "x", "--no-baseline"]])
def test_options_that_make_no_sense(arguments: list[str]) -> None:
    assert app.run(["check", *arguments]) == 2


def test_a_code_that_is_no_rules_is_reported(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "train.py").write_text(
        HOT.replace("gc.collect()", "gc.collect()  # perflint: ignore[TPL303, TPL999, of-a-plug-in]")
    )
    assert app.run(["check", "--impact", "low", "train.py"]) == 1
    assert "suppresses TPL999, but" in capsys.readouterr().out

    assert app.run(["fix", "--apply", "train.py"]) == 1
    assert "ignore[TPL303, of-a-plug-in]" in (project / "train.py").read_text()
    assert app.run(["check", "--select", "TPL303", "train.py"]) == 0


def test_a_rule_misspelt_in_a_comment_is_reported_with_the_name_that_is_meant(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    comment = "gc.collect()  # perflint: ignore[gc-in-hot-lop, of-a-plug-in]"
    (project / "train.py").write_text(HOT.replace("gc.collect()", comment))
    assert app.run(["check", "train.py"]) == 1
    said = capsys.readouterr().out
    assert "TPL303 gc-in-hot-loop" in said
    assert "In this comment 'gc-in-hot-lop' is not a rule; did you mean 'gc-in-hot-loop'?" in said
    assert "of-a-plug-in" not in said.replace(comment, "")

    # However many rules ran, what is misspelt is said once, and no fix throws away what was meant.
    assert app.run(["check", "--extra", "--select", "ALL", "train.py"]) == 1
    assert capsys.readouterr().out.count("'gc-in-hot-lop' is not a rule") == 1
    app.run(["fix", "--apply", "train.py"])
    assert "gc-in-hot-lop" in (project / "train.py").read_text()


def test_the_right_name_is_no_misspelling(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for word in ("gc-in-hot-loop", "GC-in-hot-loop", "TPL3", "tpl303"):
        (project / "train.py").write_text(HOT.replace("gc.collect()", f"gc.collect()  # perflint: ignore[{word}]"))
        assert app.run(["check", "train.py"]) == 0
        assert "is not a rule" not in capsys.readouterr().out
