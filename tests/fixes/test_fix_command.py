"""`perflint fix` as its users see it: what is printed where, what is written, and with which exit code."""

from __future__ import annotations

import io
import json
import stat
from pathlib import Path

import pytest

from perflint.cli import app
from perflint.fixes import rounds, write

SAFE = """import copy
import torch


def keep(model: torch.nn.Module, path):
    torch.save({}, path)
    return copy.copy(path)
"""
COPIED, PLAIN = "copy.deepcopy(model.state_dict())", "model.state_dict()"
UNSAFE = """import gc


def train(model, loader, optimizer):
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()
        gc.collect()
"""


def safe(argument: str = COPIED) -> str:
    return SAFE.replace("{}", argument)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def perflint(*arguments: str) -> int:
    return app.run([*arguments, "--no-cache"])


def test_the_diff_is_all_there_is_and_nothing_is_written(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / "save.py"
    file.write_text(safe())
    for arguments in (["fix", "save.py"], ["fix", "--diff"], ["fix", "."]):
        assert perflint(*arguments) == 1
        printed = capsys.readouterr()
        assert printed.out == (
            "--- save.py\n+++ save.py\n@@ -3,5 +3,5 @@\n \n \n def keep(model: torch.nn.Module, path):\n"
            f"-    torch.save({COPIED}, path)\n+    torch.save({PLAIN}, path)\n     return copy.copy(path)\n"
        )
        assert printed.err == "perflint: 1 fix in 1 file; apply with --apply\n"
    assert file.read_text() == safe()


def test_apply_writes_and_names_the_file_and_a_second_time_finds_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = project / "save.py"
    file.write_text(safe())
    assert perflint("fix", "--apply", "save.py") == 1
    printed = capsys.readouterr()
    assert printed.out == "fixed save.py: TPL301\n"
    assert printed.err == "perflint: 1 fix in 1 file made\n"
    assert file.read_text() == safe(PLAIN)
    assert perflint("fix", "--apply", "save.py") == 0
    assert capsys.readouterr() == ("", "perflint: nothing to fix\n")


WRAPPED = """import torch


def train(model, loader, optimizer):
    model = torch.nn.DataParallel(model.cuda())
    for images in loader:
        model(images).mean().backward()
        optimizer.step()
"""


def test_what_has_no_fix_is_counted_with_the_reason(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "train.py").write_text(WRAPPED)
    assert perflint("fix", "--select", "TPL801") == 0
    reason = "launcher, sampler and everything that only one process may do must change."
    assert capsys.readouterr().err == (
        f"perflint: TPL801: 1 finding without a fix: {reason}\nperflint: nothing to fix\n"
    )


def test_unsafe_fixes_are_asked_for(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / "train.py"
    file.write_text(UNSAFE)
    assert perflint("fix", "--select", "TPL303") == 0
    assert capsys.readouterr() == ("", "perflint: nothing to fix (1 more with --unsafe)\n")
    assert perflint("fix", "--select", "TPL303", "--unsafe", "--apply") == 1
    assert "gc.collect" not in file.read_text()


@pytest.mark.parametrize("arguments", [["--select", "TPL303"], ["--ignore", "TPL301"]])
def test_rules_are_chosen(project: Path, arguments: list[str]) -> None:
    file = project / "save.py"
    file.write_text(safe())
    assert perflint("fix", "--apply", *arguments) == 0
    assert file.read_text() == safe()


@pytest.mark.parametrize(
    ("before", "encoding"),
    [
        pytest.param("\ufeff" + safe(), "utf-8", id="mark"),
        pytest.param(safe().replace("\n", "\r\n"), "utf-8", id="crlf"),
        pytest.param(safe().replace("\n", "\r"), "utf-8", id="cr"),
        pytest.param(safe().replace("\n\n\n", "\r\n\n\r\n"), "utf-8", id="mixed"),
        pytest.param("# -*- coding: latin-1 -*-\n# ü\n" + safe(), "latin-1", id="cookie"),
        pytest.param("#!/usr/bin/env python\n# vim: set fileencoding=cp1252 :\n# €\n" + safe(), "cp1252", id="vim"),
        pytest.param(safe().rstrip("\n"), "utf-8", id="no end of line"),
        pytest.param(safe().replace("    ", "\t"), "utf-8", id="tabs"),
        pytest.param(safe().replace("()), path)", "()), path)  # 𝛼 \f\x0b"), "utf-8", id="odd characters"),
        pytest.param(safe().replace("copy.", "\\\n   copy . "), "utf-8", id="continued"),
        pytest.param(safe().replace("    torch", "    '𝛼'; torch"), "utf-8", id="semicolon"),
    ],
)
def test_every_other_byte_stays(project: Path, before: str, encoding: str) -> None:
    file = project / "save.py"
    file.write_bytes(before.encode(encoding))
    file.chmod(0o751)
    assert perflint("fix", "--apply") == 1
    wanted = before.replace(COPIED, PLAIN).replace("copy . deepcopy(model.state_dict())", PLAIN)
    assert file.read_bytes() == wanted.encode(encoding)
    assert stat.S_IMODE(file.stat().st_mode) == 0o751
    assert {path.name for path in project.iterdir()} == {"pyproject.toml", "save.py"}


def test_standard_input_is_fixed_to_standard_output(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    given = safe().replace("\n", "\r\n").encode()
    (project / "input").write_bytes(given)
    for arguments, code in (([], 0), (["--apply"], 0), (["--diff"], 1)):
        with (project / "input").open() as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            assert perflint("fix", "-", "--stdin-filename", "pkg/save.py", *arguments) == code
        out = capfdbinary.readouterr().out
        if "--diff" in arguments:
            assert out.startswith(b"--- pkg/save.py\n")
        else:
            assert out == given.replace(COPIED.encode(), PLAIN.encode())


@pytest.mark.parametrize(("given", "code"), [(b"x = 1\r\n", 0), (b"def f(:\n", 2), (b"# coding: nonsense\n", 2)])
def test_standard_input_that_stays_comes_out_as_it_is(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], given: bytes, code: int
) -> None:
    (project / "input").write_bytes(given)
    with (project / "input").open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert perflint("fix", "-") == code
    assert capfdbinary.readouterr().out == given


def test_a_file_at_fault_does_not_stop_the_others(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "bad.py").write_text("def f(:\n")
    (project / "save.py").write_text(safe())
    assert perflint("fix", "--apply") == 2
    assert (project / "save.py").read_text() == safe(PLAIN)
    assert "bad.py:1: does not parse" in capsys.readouterr().err


def test_a_link_out_of_the_project_is_not_followed(
    project: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "save.py"
    outside.write_text(safe())
    (project / "link.py").symlink_to(outside)
    assert perflint("fix", "--apply", "link.py") == 2
    assert outside.read_text() == safe()
    assert "a symbolic link to a file outside of the project" in capsys.readouterr().err


def test_a_file_under_two_names_is_fixed_once(project: Path) -> None:
    (project / "save.py").write_text(safe())
    (project / "link.py").symlink_to("save.py")
    assert perflint("fix", "--apply") == 1
    assert (project / "link.py").is_symlink()
    assert (project / "save.py").read_text() == safe(PLAIN)


def test_a_file_that_changes_meanwhile_is_not_overwritten(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = project / "save.py"
    file.write_text(safe())
    target = write._target

    def edited(*arguments: object) -> Path:
        file.write_text("x = 1\n")
        return target(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(write, "_target", edited)
    assert perflint("fix", "--apply") == 2
    assert file.read_text() == "x = 1\n"


@pytest.mark.parametrize(
    "arguments",
    [["fix", "--apply", "--diff"], ["fix", "--stdin-filename", "a.py"], ["check", "--unsafe"], ["check", "--fix", "-"]],
)
def test_options_that_make_no_sense(arguments: list[str]) -> None:
    assert perflint(*arguments) == 2


def test_check_fix_makes_the_fixes_and_reports_what_is_left(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / "save.py"
    file.write_text(safe() + UNSAFE)
    assert perflint("check", "--fix", "--output-format", "json") == 1
    printed = capsys.readouterr()
    assert printed.err.splitlines()[0] == "perflint: fixed save.py: TPL301"
    assert [item["code"] for item in json.loads(printed.out)["findings"]] == ["TPL303"]
    assert file.read_text() == safe(PLAIN) + UNSAFE


def test_check_fix_says_by_its_exit_code_that_something_changed(project: Path) -> None:
    (project / "save.py").write_text(safe())
    assert perflint("check", "--fix") == 1
    assert perflint("check", "--fix") == 0


def answered(monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{one}\n" for one in answers)))


TWO = (
    SAFE.replace("{}", COPIED) + "\n\ndef again(model: torch.nn.Module, path):\n    torch.save(" + COPIED + ", path)\n"
)


@pytest.mark.parametrize(
    ("answers", "made"),
    [
        (("y", "n"), (True, False)),
        (("n", "y"), (False, True)),
        (("?", "x", "y", "y"), (True, True)),
        (("a",), (True, True)),
        (("d",), (False, False)),
        (("q",), (False, False)),
        (("y",), (True, False)),  # the input ends there
    ],
)
def test_interactive_makes_the_fixes_that_were_said_yes_to(
    project: Path, monkeypatch: pytest.MonkeyPatch, answers: tuple[str, ...], made: tuple[bool, bool]
) -> None:
    (project / "save.py").write_text(TWO)
    answered(monkeypatch, *answers)
    perflint("fix", "--interactive", "--select", "TPL301")
    first, second = (project / "save.py").read_text().split("def again")
    assert (COPIED not in first, COPIED not in second) == made


def test_interactive_shows_the_hunk_of_each_fix_alone(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "save.py").write_text(TWO)
    answered(monkeypatch, "n", "n")
    perflint("fix", "-i", "--select", "TPL301")
    said = capsys.readouterr().err
    assert said.count(f"-    torch.save({COPIED}, path)") == 2
    assert "(1/2) Apply this fix [y,n,a,d,q,?]?" in said
    assert (project / "save.py").read_text() == TWO


def test_interactive_is_for_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert perflint("fix", "-i", "-") == 2
    assert "--interactive works on files only" in capsys.readouterr().err


def test_what_is_left_out_is_said_each_time_and_nothing_is_called_fixed(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rounds._Trial, "_fault", lambda self, text: "the result does not parse")
    (project / "save.py").write_text(safe())
    for _ in range(2):
        assert perflint("fix", "--apply") == 1
        said = capsys.readouterr().err
        assert "the result does not parse" in said
        assert "no fix was applied, 1 fix rejected" in said
        assert "nothing to fix" not in said
