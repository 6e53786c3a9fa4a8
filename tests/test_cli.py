"""The command line as its users see it: what is printed where, and with which exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from perflint import __version__, engine
from perflint.cli import app, console
from perflint.finding import Confidence, Finding, Fix, Heat, Impact, Problem, Report, Span

HOT = """import gc


def train(model, loader, optimizer):
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()
        gc.collect()
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "cold.py").write_text("x = 1\n")
    return tmp_path


@pytest.fixture
def hot(project: Path) -> Path:
    file = project / "train.py"
    file.write_text(HOT)
    return file


def perflint(
    *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the program itself, in a process of its own."""
    command = [sys.executable, "-m", "perflint", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, env={**os.environ, **(env or {})}, check=False)
    return subprocess.CompletedProcess(
        command, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode()
    )


def pretend(monkeypatch: pytest.MonkeyPatch, findings: Sequence[Finding] = (), errors: Sequence[Problem] = ()) -> None:
    """Let the analysis come out as told."""
    report = Report(tuple(findings), tuple(errors), files=1)
    monkeypatch.setattr(engine, "check", lambda discovery, options: report)


def finding(
    impact: Impact = Impact.MEDIUM, confidence: Confidence = Confidence.HIGH, fix: Fix | None = None
) -> Finding:
    return Finding(
        "TPL303", "gc-in-hot-loop", "train.py", Span(8, 9, 8, 21), "It waits.", confidence, impact, Heat.STEP, fix=fix
    )


# check


def test_clean_is_zero() -> None:
    done = perflint("check")

    assert done.returncode == 0
    assert done.stderr == ""


def test_findings_are_one(hot: Path) -> None:
    done = perflint("check", "train.py")

    assert done.returncode == 1
    assert "train.py:8:9" in done.stdout
    assert "TPL303" in done.stdout
    assert done.stderr == ""


def test_a_line_that_is_not_there_has_no_heat(hot: Path) -> None:
    assert perflint("check", "--explain-heat", "train.py:8").returncode == 0
    done = perflint("check", "--explain-heat", "train.py:80")

    assert done.returncode == 2
    assert "train.py has no line 80; its last line is 8" in done.stderr


def test_attributes_of_macos_are_no_source(hot: Path) -> None:
    (hot.parent / "._train.py").write_bytes(b"\0\5\x16\7\0\2\0\0Mac OS X        \xff")
    done = perflint("check", "--exit-zero")
    assert done.returncode == 0
    assert "left out: 1 AppleDouble file (`._*`), no source" in done.stdout


def test_exit_zero(hot: Path) -> None:
    assert perflint("check", "--exit-zero").returncode == 0


def test_json_is_one_object_and_nothing_else(hot: Path) -> None:
    done = perflint("check", "--output-format", "json", ".")
    printed = json.loads(done.stdout)

    assert printed["version"] == __version__
    assert [(one["code"], one["path"], one["line"]) for one in printed["findings"]] == [("TPL303", "train.py", 8)]
    assert printed["files"] == 2


def test_a_broken_file_is_two_and_the_others_are_checked(hot: Path, project: Path) -> None:
    (project / "broken.py").write_text("x = 1\ny = = 2\n")

    done = perflint("check", "--output-format", "json", "--exit-zero")
    printed = json.loads(done.stdout)

    assert done.returncode == 2
    assert [(one["path"], one["line"]) for one in printed["errors"]] == [("broken.py", 2)]
    assert len(printed["findings"]) == 1


def test_no_file_at_all_is_clean(project: Path) -> None:
    (project / "empty").mkdir()

    assert perflint("check", "empty").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check", "gone.py"], "perflint: no such file or directory: gone.py"),
        (["check", ""], "perflint: an empty path; the working directory is '.'"),
        (["fix", "--apply", ""], "perflint: an empty path; the working directory is '.'"),
        (["check", "--select", "TPL99"], "--select: no rule matches 'TPL99'; did you mean"),
        (["check", "--fail-on", "loud"], "fail-on: 'loud' is not one of"),
        (["check", "--config", "no.toml"], "no.toml: cannot be read"),
        (["check", "--confidence", "sure"], "'sure' is not one of"),
        (["check", "--output-format", "xml"], "'xml' is not one of"),
        (["check", "--no-such-option"], "No such option"),
        (["check", "-", "cold.py"], "cannot be mixed"),
        (["check", "--stdin-filename", "a.py"], "has no effect without the path '-'"),
        (["check", "--output", "no/such/folder/x"], "cannot be written"),
        (["check", "--explain-heat", "train.py"], "is not FILE:LINE"),
        (["check", "--explain-heat", "cold.py:0"], "cold.py has no line 0; its last line is 1"),
        (["chekc"], "no command 'chekc'; did you mean 'check'?"),
        (["xyz"], "no command 'xyz'; there are baseline, check, clean"),
        (["cold.py"], "perflint check cold.py"),
        (["explain", "TPL33"], "no rule 'TPL33'; did you mean"),
        (
            ["explain", "a.py:3"],
            "is a place, not a rule; to explain how often it runs: perflint check --explain-heat a.py:3",
        ),
    ],
)
def test_what_the_user_can_mend_is_said_in_a_line(
    arguments: list[str], words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert app.run(arguments) == 2

    printed = capfd.readouterr()
    assert words in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""


def test_configuration_that_is_wrong_is_two(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.perflint]\nselct = ["TPL1"]\n')

    done = perflint("check", "--exit-zero")

    assert done.returncode == 2
    assert "pyproject.toml:2: unknown key 'selct'" in done.stderr
    assert "'select'" in done.stderr


def test_what_is_excluded_stays_so_from_a_folder_below(hot: Path, project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.perflint]\nexclude = ["train.py"]\n')
    (project / "sub").mkdir()
    os.chdir(project / "sub")

    assert perflint("check", "..").returncode == 0


def test_configuration_is_read_and_the_command_line_goes_before_it(hot: Path, project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.perflint]\nignore = ["TPL3"]\noutput-format = "json"\n')

    assert json.loads(perflint("check").stdout)["findings"] == []
    assert perflint("check", "--select", "TPL303").returncode == 1
    assert "TPL303" in perflint("check", "--select", "gc-in-hot-loop", "--output-format", "text").stdout


def test_selecting_and_ignoring(hot: Path) -> None:
    assert app.run(["check", "--ignore", "TPL1,gc-in-hot-loop"]) == 0
    assert app.run(["check", "--select", "TPL1", "--select", "TPL303"]) == 1
    assert app.run(["check", "--select", "TPL1"]) == 0


def test_a_run_without_a_rule_is_a_mistake(hot: Path, project: Path) -> None:
    done = perflint("check", "--select", "TPL303", "--ignore", "TPL303")
    assert done.returncode == 2
    assert "no rule to run: all selected rules are ignored or extra" in done.stderr

    (project / "pyproject.toml").write_text("[tool.perflint]\nselect = []\n")
    assert perflint("check").returncode == 2


def test_standard_input_with_the_name_it_goes_by(hot: Path) -> None:
    done = perflint("check", "--output-format", "json", "--stdin-filename", "./train.py", "-", stdin=HOT.encode())
    shorter = perflint("check", "--output-format", "json", "--stdin-filename", "train.py", "-", stdin=b"x = 1\n")

    assert [one["path"] for one in json.loads(done.stdout)["findings"]] == ["train.py"]
    assert json.loads(shorter.stdout)["findings"] == []
    assert json.loads(shorter.stdout)["files"] == 1


def test_report_into_a_file(hot: Path, project: Path) -> None:
    done = perflint("check", "--output-format", "json", "--output", "report.json")

    assert done.returncode == 1
    assert done.stdout == ""
    assert len(json.loads((project / "report.json").read_text())["findings"]) == 1


def test_the_page_shows_what_was_measured_here(hot: Path, project: Path) -> None:
    from perflint.verify.evidence import folder_of, store
    from perflint.verify.results import Machine, Result, Verdict

    result = Result("TPL303", "its benchmark", "large", Verdict.FASTER, 2.0, 1.0, 2.0, 1.9, 2.1)
    store(folder_of(project), Machine("cpu", "A processor", "2.13"), [result], memory="")

    page = perflint("check", "--output-format", "html").stdout

    assert "its benchmark large: faster, 2x (1.9 to 2.1)" in page


def test_silenced_findings_are_listed_when_asked_for(hot: Path) -> None:
    hot.write_text(HOT.replace("gc.collect()", "gc.collect()  # perflint: ignore[TPL303] meant"))

    def results(*arguments: str) -> list[dict[str, Any]]:
        done = perflint("check", "--output-format", "sarif", *arguments)
        assert done.returncode == 0
        found: list[dict[str, Any]] = json.loads(done.stdout)["runs"][0]["results"]
        return found

    assert results() == []
    (silenced,) = results("--silenced")
    assert silenced["suppressions"][0]["justification"] == "meant"


@pytest.mark.parametrize(
    ("fail_on", "code"),
    [("medium", 1), ("high", 0), ("confidence=high", 1), ("impact=medium,confidence=high", 1), ("impact=high", 0)],
)
def test_fail_on_narrows_what_counts(monkeypatch: pytest.MonkeyPatch, fail_on: str, code: int) -> None:
    pretend(monkeypatch, [finding(Impact.MEDIUM, Confidence.HIGH)])

    assert app.run(["check", "--fail-on", fail_on]) == code


def test_errors_go_before_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, [finding()], [Problem("f.py", "rule TPL303 failed", 3)])

    assert app.run(["check", "--exit-zero"]) == 2


def test_details_of_errors_are_for_debugging(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, errors=[Problem("f.py", "rule TPL303 failed", 3, detail="Traceback: here")])

    app.run(["check"])
    quiet = capfd.readouterr()
    app.run(["check", "--debug"])
    loud = capfd.readouterr()

    assert "Traceback" not in quiet.out + quiet.err
    assert "Traceback: here" in loud.err


def test_a_bug_is_one_line_and_two(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def fail(discovery: object, options: object) -> Report:
        raise KeyError("oh\nno")

    monkeypatch.setattr(engine, "check", fail)

    assert app.run(["check"]) == 2
    printed = capfd.readouterr().err
    assert printed.count("\n") == 1
    assert "bug in perflint: KeyError" in printed
    assert app.run(["check", "--debug"]) == 2
    assert "Traceback" in capfd.readouterr().err


def test_interrupted(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def interrupt(discovery: object, options: object) -> Report:
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "check", interrupt)

    assert app.run(["check"]) == 130
    assert capfd.readouterr().err.strip() == "perflint: interrupted"


# Printing


def test_colour_only_where_it_is_wanted(
    hot: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def coloured(*options: str, **variables: str) -> bool:
        for name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert app.run(["check", *options]) == 1
        return "\x1b[" in capfd.readouterr().out

    assert not coloured()
    assert coloured("--color")
    assert coloured(FORCE_COLOR="1")
    assert not coloured(FORCE_COLOR="1", NO_COLOR="1")
    assert coloured("--color", NO_COLOR="1")
    assert not coloured("--no-color", FORCE_COLOR="1")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_any_terminal_can_show_any_source(project: Path, encoding: str) -> None:
    (project / "日本.py").write_text(HOT.replace("gc.collect()", "gc.collect()  # 日本 é 😀"), encoding="utf-8")

    done = perflint("check", env={"PYTHONIOENCODING": encoding})

    assert done.returncode == 1
    assert done.stderr == ""


def test_lone_surrogates_are_escaped(capfd: pytest.CaptureFixture[str]) -> None:
    console.write("a \udc80 b\n")

    assert capfd.readouterr().out == "a \\udc80 b\n"


def test_a_reader_that_goes_away_ends_the_output_quietly(hot: Path) -> None:
    command = [sys.executable, "-m", "perflint", "check", "."]
    reading, writing = os.pipe()
    os.close(reading)

    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)

    assert done.stderr == b""
    assert done.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("arguments", [["check"], ["fix", "-"], ["rules"]])
def test_standard_output_that_takes_nothing_is_said(arguments: list[str], hot: Path) -> None:
    with hot.open("rb") as stdin, Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "perflint", *arguments],
            stdin=stdin,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == 2
    assert "standard output cannot be written: No space left on device" in done.stderr
    assert "bug in perflint" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="a shell closes it")
def test_standard_streams_that_are_closed(hot: Path) -> None:
    def closed(redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = f'exec "$0" -m perflint "$@" {redirection}'
        return subprocess.run(
            ["sh", "-c", command, sys.executable, *arguments], capture_output=True, text=True, check=False
        )

    done = closed(">&-", "check")
    assert done.returncode == 2
    assert done.stderr == "perflint: standard output cannot be written: it is closed\n"
    assert closed(">&-", "check", "--output", "report.txt").returncode == 1
    assert closed("2>&-", "check").returncode == 1
    assert closed("2>&-", "check", "gone.py").returncode == 2


def test_without_docstrings_code_is_checked_all_the_same(hot: Path) -> None:
    assert perflint("check", env={"PYTHONOPTIMIZE": "2"}).returncode == 1
    assert "PYTHONOPTIMIZE" in perflint("explain", "TPL303", env={"PYTHONOPTIMIZE": "2"}).stdout
    assert perflint("check", "--output-format", "sarif", env={"PYTHONOPTIMIZE": "2"}).returncode == 1


def test_progress_waits_and_is_for_terminals(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with console.progress() as absent:
        assert absent is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with console.progress() as shown:
        assert shown is not None
        shown(1, 10)
        assert capfd.readouterr().err == ""
        now[0] = 1.5
        shown(7, 10)
        assert "7/10 files" in capfd.readouterr().err
    assert capfd.readouterr().err.endswith("\x1b[K")


# The other commands


def test_version_imports_nothing_that_takes_time() -> None:
    probe = (
        "import sys; sys.argv = ['perflint', '--version']; from perflint.cli import main; main(); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    first, _, modules = done.stdout.partition("\n")

    assert first == f"perflint {__version__}"
    assert not {"click", "rich", "libcst", "ast", "pathspec", "perflint.rule_api.rule"} & set(modules.split())


@pytest.mark.parametrize("arguments", [["check", "--help"], ["--help"], ["check", "gone.py"]])
def test_nothing_heavy_is_imported_before_it_is_needed(arguments: list[str]) -> None:
    probe = f"import sys; from perflint.cli.app import run; run({arguments!r}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)

    heavy = {"rich", "libcst", "pathspec", "socket", "importlib.metadata", "torch", "perflint.rules"}
    assert not heavy & set(done.stderr.split())


def test_rules_are_listed_in_every_format(capfd: pytest.CaptureFixture[str]) -> None:
    def printed(output_format: str) -> str:
        assert app.run(["rules", "--output-format", output_format]) == 0
        return capfd.readouterr().out

    text, markdown = printed("text"), printed("markdown")
    listed = json.loads(printed("json"))

    by_code = {one["code"]: one for one in listed}
    assert by_code["TPL303"]["name"] == "gc-in-hot-loop"
    assert {one["tier"] for one in listed} <= {"core", "extra"}
    assert {one["fix"] for one in listed} <= {"safe", "unsafe", "-"}
    assert by_code["TPL303"]["fix"] == "unsafe"
    assert [line.split()[0] for line in text.splitlines()] == ["code", *by_code]
    assert [line.split()[1] for line in markdown.splitlines()[2:]] == list(by_code)


@pytest.mark.parametrize("word", ["TPL303", "tpl303", "gc-in-hot-loop"])
def test_a_rule_is_explained_by_code_and_by_name(word: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert app.run(["explain", word]) == 0

    printed = capfd.readouterr().out
    assert printed.startswith("TPL303 gc-in-hot-loop\n")
    for heading in (
        "What it does",
        "Why is this slow?",
        "Example",
        "What to do",
        "Fix safety",
        "Not reported",
        "Measured",
    ):
        assert f"\n{heading}\n" in printed


def test_the_example_is_shown_without_its_markers(monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    from perflint.cli import explain

    folder = project / "fixtures" / "TPL303-gc-in-hot-loop"
    folder.mkdir(parents=True)
    (folder / "example.py").write_text('"""What it is about."""\ngc.collect()  # expect: TPL303\nlast()\n')
    (folder / "example.unsafe.py").write_text('"""What it is about."""\nlast()\n')
    monkeypatch.setattr("importlib.resources.files", lambda package: project / "fixtures")

    page = explain.page(explain.find_rule("TPL303"))

    bad, _, good = page.partition("Example\n\nWhat it is about.\n\n")[2].partition("Use instead")
    assert bad == "    gc.collect()\n    last()\n\n"
    assert good.startswith(" (`perflint fix --unsafe` makes this change; review it):\n\n    last()\n\nWhat to do\n")
    assert "expect" not in page


def test_a_good_form_beside_the_example_goes_before_what_a_fix_writes(
    monkeypatch: pytest.MonkeyPatch, project: Path
) -> None:
    from perflint.cli import explain

    folder = project / "fixtures" / "TPL303-gc-in-hot-loop"
    folder.mkdir(parents=True)
    (folder / "example.py").write_text("gc.collect()  # expect: TPL303\n")
    (folder / "example.unsafe.py").write_text("pass\n")
    (folder / "instead.py").write_text('"""Once an epoch."""\n\nif end:\n    gc.collect()\n')
    monkeypatch.setattr("importlib.resources.files", lambda package: project / "fixtures")

    page = explain.page(explain.find_rule("TPL303"))

    assert "Use instead:\n\n    if end:\n        gc.collect()\n\nWhat to do\n" in page
