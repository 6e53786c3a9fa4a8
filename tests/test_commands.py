"""Every command that the README and the pages in docs show is one that perflint takes, and runs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from perflint.cli.app import COMMANDS, group

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
#: Indented or fenced: `    perflint check   # what it does`.
_LINE = re.compile(r"^(?: {4})?(perflint [a-z-]+(?: .*)?)$", re.MULTILINE)

#: By what a command has, why it is only parsed here: other tests run what it does.
NOT_RUN = {
    "--watch": "runs until it is interrupted",
    "--interactive": "asks",
    "--executor": "needs a cluster",
    "server": "waits for an editor",
    "verify": "measures for minutes",
    "--verify": "measures for minutes",
    "observe": "runs a training program",
    "--observed": "reads what `observe` writes",
}


def commands() -> Iterator[str]:
    for page in PAGES:
        for block in _blocks(page.read_text(encoding="utf-8")):
            for found in _LINE.finditer(block):
                yield re.sub(r"\s+# .*$", "", found[1]).strip()


def _blocks(text: str) -> Iterator[str]:
    """Fenced blocks of shell, and runs of indented lines."""
    yield from re.findall(r"^```(?:sh|bash|console)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    outside = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    yield "\n".join(line for line in outside.splitlines() if line.startswith("    perflint "))


SHOWN = list(dict.fromkeys(commands()))


def _runs(command: str) -> bool:
    return not set(shlex.split(command)) & set(NOT_RUN)


def test_commands_are_found() -> None:
    assert len(SHOWN) > 20
    assert {shlex.split(command)[1] for command in SHOWN} <= set(COMMANDS)


@pytest.mark.parametrize("command", SHOWN)
def test_what_is_shown_is_what_perflint_takes(command: str) -> None:
    _, name, *arguments = shlex.split(command)
    context = click.Context(group)
    found = group.get_command(context, name)
    assert found is not None
    found.make_context(name, arguments, parent=context)  # raises UsageError


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the files that the commands name, and a branch to compare with."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("src", "pkg"):
        shutil.copytree(ROOT / "fixtures" / "sample_project", folder / name)
    with (folder / "pkg" / "train.py").open("a", encoding="utf-8") as file:
        file.write("\n" * 40)
    who = {f"GIT_{role}_{what}": "tester@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for arguments in ("init -q", "add -A", "commit -qm state", "update-ref refs/remotes/origin/main HEAD"):
        subprocess.run(["git", *arguments.split()], cwd=folder, env={**os.environ, **who}, check=True)
    return folder


@pytest.mark.parametrize("command", [command for command in SHOWN if _runs(command)])
def test_what_is_shown_runs(command: str, project: Path) -> None:
    if "baseline" in command and "write" not in command:
        _run("perflint baseline write", project)
    done = _run(command, project)
    assert done.returncode in {0, 1}, done.stderr
    assert done.stdout or done.stderr


def _run(command: str, project: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    return subprocess.run(
        [sys.executable, "-m", *shlex.split(command)],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_the_line_for_a_checkout_names_what_is_there() -> None:
    """Installing takes a network; what the line installs is there, and so is what it checks."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    line = text.partition("<!-- sample line -->\n")[2].partition("<!-- end -->")[0].strip()
    *_, last = line.split(" && ")
    program, *arguments = shlex.split(last)
    assert program == ".venv/bin/perflint"
    done = _run(shlex.join(["perflint", *arguments]), ROOT)
    assert done.returncode == 1, done.stderr
