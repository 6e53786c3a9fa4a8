"""Comforts of a shell: completion in the shell itself, and checking again when something changes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from perflint.cli import app
from perflint.rule_api.registry import load_rules

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
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


# Completion


@pytest.fixture
def path_with_perflint(tmp_path_factory: pytest.TempPathFactory) -> str:
    tool = tmp_path_factory.mktemp("bin") / "perflint"
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m perflint "$@"\n')
    tool.chmod(0o755)
    return f"{tool.parent}{os.pathsep}{os.environ['PATH']}"


def completed_by_bash(line: str, path: str) -> list[str]:
    script = (
        'eval "$(perflint completion bash)"\n'
        f"COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
        "_perflint_completion perflint 2>/dev/null; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_commands_options_and_rules(path_with_perflint: str) -> None:
    assert completed_by_bash("perflint ba", path_with_perflint) == ["baseline"]
    assert completed_by_bash("perflint baseline pr", path_with_perflint) == ["prune"]
    assert "--changed-since" in completed_by_bash("perflint check --ch", path_with_perflint)
    assert completed_by_bash("perflint check --output-format git", path_with_perflint) == ["github", "gitlab"]
    assert completed_by_bash("perflint explain deepcopy", path_with_perflint) == ["deepcopy-state-dict"]
    codes = [rule.code for rule in load_rules() if rule.code.startswith("TPL30")]
    assert completed_by_bash("perflint check --select TPL1,tpl30", path_with_perflint) == [f"TPL1,{it}" for it in codes]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_script_is_one_its_shell_reads(shell: str, capfd: pytest.CaptureFixture[str], project: Path) -> None:
    assert app.run(["completion", shell]) == 0
    script = capfd.readouterr().out
    assert "_PERFLINT_COMPLETE" in script
    assert "\n" in script.strip()
    program = shutil.which(shell)
    if program is not None:
        (project / "script").write_text(script)
        subprocess.run([program, "-n", "script"], check=True)


def test_another_shell_is_a_mistake() -> None:
    assert app.run(["completion", "tcsh"]) == 2


# Watching


@contextmanager
def watching(*arguments: str) -> Iterator[IO[str]]:
    """What `perflint check --watch` prints. It has to end well when it is interrupted."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "perflint", "check", "--watch", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0, rest


def until_it_waits(printed: IO[str]) -> str:
    lines = []
    for line in printed:
        lines.append(line)
        if line.startswith("perflint: watching"):
            return "".join(lines)
    raise AssertionError("".join(lines))


def save(file: Path, text: str) -> None:
    """Whole at once, as editors save: what watches never sees a file that is half written."""
    whole = file.with_suffix(".saved")
    whole.write_text(text)
    whole.replace(file)


@pytest.mark.usefixtures("heeded_signals")
def test_a_change_is_checked_at_once(project: Path) -> None:
    file = project / "train.py"
    save(file, "x = 1\n")
    with watching() as printed:
        assert "nothing found" in until_it_waits(printed)
        save(file, HOT)
        assert "train.py:8:9  TPL303" in until_it_waits(printed)
        save(project / "pyproject.toml", '[tool.perflint]\nignore = ["TPL303"]\n')
        assert "nothing found" in until_it_waits(printed)
        save(project / "pyproject.toml", "[tool.perflint]\nignore = 3\n")
        assert "ignore must be a list" in until_it_waits(printed)
        save(project / "pyproject.toml", "")
        assert "TPL303" in until_it_waits(printed)
        save(project / "other.py", HOT)
        assert "other.py:8:9" in until_it_waits(printed)
        file.unlink()
        assert "train.py" not in until_it_waits(printed)


@pytest.mark.parametrize("arguments", [["-"], ["--add-ignores"], ["--explain-heat", "a.py:1"]])
def test_watching_goes_with_files(arguments: list[str]) -> None:
    assert app.run(["check", "--watch", *arguments]) == 2
