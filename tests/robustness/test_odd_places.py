"""Files that Python takes and hardly anybody writes, and places where nothing can be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from perflint.cli.app import run

HEAD = "import gc\ndef train(model, loader, optimizer, kind):\n    for batch in loader:\n        optimizer.step()\n"


@pytest.mark.parametrize("binding", ["kind == 0", "(kind := batch) == 0"])
def test_as_many_branches_as_python_compiles_are_inspected(
    binding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    branches = "".join(f"        elif kind == {number}:\n            batch = {number}\n" for number in range(1, 1500))
    text = f"{HEAD}        if {binding}:\n            pass\n{branches}        gc.collect()\n"
    compile(text, "many.py", "exec")
    Path("many.py").write_text(text)
    before = sys.getrecursionlimit()
    assert run(["check", "--no-cache", "--select", "TPL303", "--time-limit", "0", "--output-format", "json", "."]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["errors"] == []
    assert [one["line"] for one in found["findings"]] == [text.count("\n")]
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize("arguments", [["check"], ["fix", "--apply"], ["config", "show"], ["rules"], ["clean"]])
@pytest.mark.skipif(sys.platform == "win32", reason="a directory that somebody works in cannot be deleted there")
def test_a_deleted_working_directory_is_named(arguments: list[str], tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = "import os, sys\nfrom perflint.cli.app import run\nos.rmdir(os.getcwd())\nsys.exit(run(sys.argv[1:]))"
    paths = [*map(os.path.abspath, sys.path), str(Path(__file__).parents[2])]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=gone,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 2
    assert done.stderr == "perflint: the working directory is deleted; change to one that exists, then try again\n"


@pytest.mark.parametrize("path", ["a.py", ".", "below"])
def test_a_configuration_file_that_is_a_folder_is_named(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "perflint.toml").mkdir()
    (tmp_path / "below").mkdir()
    (tmp_path / "a.py").write_text("")
    assert run(["check", path]) == 2
    assert f"{tmp_path / 'perflint.toml'}: is a folder" in capsys.readouterr().err


def test_one_named_on_the_command_line_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").mkdir()
    assert run(["check", "--config", "mine.toml"]) == 2
    assert "mine.toml: cannot be read: Is a directory" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["config", "show"], ["clean"], ["check"]])
def test_a_path_that_is_not_there_is_named(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "perflint.toml").write_text("")
    (tmp_path / ".perflint_cache").mkdir()
    assert run([*command, "nowhere"]) == 2
    assert "no such file or directory: nowhere" in capsys.readouterr().err
    assert (tmp_path / ".perflint_cache").exists()
