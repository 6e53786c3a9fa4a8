"""The same findings in the same order, whatever the processes, the order of files, the hash seed and the cache."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perflint import engine
from perflint.finding import Report
from perflint.project.discovery import discover
from perflint.project.settings import load_settings
from perflint.rule_api.registry import load_rules

ROOT = Path(__file__).parent.parent.parent
FIXTURES = ROOT / "fixtures"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for group in sorted(FIXTURES.glob("TPL[1358]0*")):
        for file in sorted(group.glob("*.py")):
            name = file.name.replace(".", "_", file.name.count(".") - 1)
            shutil.copy(file, folder / f"{group.name[:6].lower()}_{name}")
    (folder / "perflint.toml").write_text("")
    return folder


def said(folder: Path, seed: str, *arguments: str) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "perflint", "check", "--extra", "--output-format", "json", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
        capture_output=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 1, done.stderr.decode()
    return done.stdout


def test_every_run_says_the_same(project: Path) -> None:
    first = said(project, "0", "--no-cache", "--jobs", "1", ".")
    assert first.count(b'"code"') > 30
    assert said(project, "1", "--no-cache", "--jobs", "4", ".") == first
    assert said(project, "2", "--jobs", "1", ".") == first, "the run that fills the cache"
    assert said(project, "3", "--jobs", "2", ".") == first, "the run that reads it"
    files = [file.name for file in project.glob("*.py")]
    random.Random(5).shuffle(files)
    assert said(project, "4", "--no-cache", *files) == first
    assert said(project, "5", "--no-cache", *reversed(files), *files[:3]) == first


def test_a_tree_that_was_made_in_another_order_is_the_same(project: Path, tmp_path: Path) -> None:
    files = sorted(file.name for file in project.glob("*.py"))
    random.Random(6).shuffle(files)
    for name in files:
        shutil.copy(project / name, tmp_path / name)
    (tmp_path / "perflint.toml").write_text("")
    assert said(tmp_path, "7", "--no-cache", ".") == said(project, "8", "--no-cache", ".")


def test_it_does_not_matter_how_a_path_is_written(project: Path) -> None:
    first = said(project, "0", "--no-cache", ".")
    for way in (str(project), f"../{project.name}", f"./../{project.name}//.", f"{project}/"):
        assert said(project, "1", "--no-cache", way) == first
    names = sorted(file.name for file in project.glob("*.py"))
    ways = (".//{}", "./{}", f"{project}/{{}}", f"../{project.name}/{{}}")
    assert said(project, "2", "--no-cache", *(ways[n % 4].format(name) for n, name in enumerate(names))) == first


def test_a_file_by_itself_and_trees_that_are_not_kept_change_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    settings = load_settings(project)
    rules = [rule() for rule in load_rules()]

    def found(*paths: str) -> Report:
        return engine.check(discover(paths, settings), engine.Options(settings, rules, cache=False, everything=True))

    whole = found(".")
    for name in random.Random(7).sample(sorted({one.path for one in whole.findings}), 8):
        assert found(name).findings == tuple(one for one in whole.findings if one.path == name)
    size = sum(file.stat().st_size for file in project.rglob("*.py"))
    for kept in (0, size // 2):  # none, and those of some files
        monkeypatch.setattr("perflint.engine.texts._KEPT_BYTES", kept)
        assert found(".") == whole


def test_fixes_do_not_depend_on_the_hash_seed(project: Path) -> None:
    diffs = {
        subprocess.run(
            [sys.executable, "-m", "perflint", "fix", "--unsafe", "--no-cache", "--diff", "."],
            cwd=project,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
            capture_output=True,
            timeout=200,
            check=False,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(diffs) == 1
    assert diffs != {b""}
