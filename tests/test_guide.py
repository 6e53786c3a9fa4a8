"""The guide to writing a rule, followed to the letter: its files are written and its commands run, in a clean copy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COPIED = ("perflint", "rules", "fixtures", "tests", "docs")

_BLOCK = re.compile(r"^ *```(\w+)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"`((?:rules|fixtures)/[\w./-]+\.py)`")


def guide() -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text.partition("\n## Write a rule\n")[2].partition("\nA plug-in does the same")[0]


def steps() -> tuple[dict[str, str], list[str]]:
    """The files that the guide shows, each named right before its block, and the commands that it gives."""
    files, commands, end = {}, [], 0
    text = guide()
    for found in _BLOCK.finditer(text):
        named = _FILE.findall(text[end : found.start()])
        block = textwrap.dedent(found[2])
        if found[1] == "sh":
            commands += block.splitlines()
        elif named:
            files[named[-1]] = block
        end = found.end()
    return files, commands


def test_the_guide_shows_a_rule_two_cases_and_what_to_run() -> None:
    files, commands = steps()
    assert [Path(name).parts[0] for name in files] == ["rules", "fixtures", "fixtures"]
    assert len(commands) == 2


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What is in the repository, without what lies around in a checkout that was worked in."""
    for name in COPIED:
        ignored = shutil.ignore_patterns("__pycache__", ".perflint_cache", ".hypothesis")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def test_following_the_guide_gives_a_rule_that_passes(checkout: Path) -> None:
    files, commands = steps()
    for name, text in files.items():
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).write_text(text, encoding="utf-8")
    # `python` is the one of the virtual environment.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PERFLINT", "PYTEST"))}
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=checkout,
            env={**environment, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-6000:]}{done.stderr[-2000:]}"
    # What was written is the new rule's, and nothing else's.
    changed = {
        file.relative_to(checkout).as_posix()
        for name in (*COPIED, "README.md")
        for file in [checkout / name, *(checkout / name).rglob("*")]
        if file.is_file() and "__pycache__" not in file.parts and not _is_same(file, ROOT / file.relative_to(checkout))
    }
    folder = next(name for name in files if name.startswith("fixtures/")).rpartition("/")[0]
    page = f"docs/rules/{Path(folder).name}.md"
    assert changed == {*files, f"{folder}/example.unsafe.py", "README.md", "docs/rules/README.md", page}


def _is_same(file: Path, other: Path) -> bool:
    return other.is_file() and file.read_bytes() == other.read_bytes()
