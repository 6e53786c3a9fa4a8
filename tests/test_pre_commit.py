"""The hooks, run by the real `pre-commit` on a scratch repository, installed the way it installs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pre_commit")

ROOT = Path(__file__).parent.parent
IDENTITY = {f"GIT_{who}_{what}": "tester@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
TRAIN = """from tidy import tidy


def train(model, loader, optimizer):
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()
        tidy()
"""
TIDY = "import gc\n\n\ndef tidy():\n    gc.collect()\n"
SAVE = "import copy\nimport torch\n\n\ndef keep(model: torch.nn.Module, path):\n    torch.save({}, path)\n"
COPIED, PLAIN = "copy.deepcopy(model.state_dict())", "model.state_dict()"


def run(*command: str, cwd: Path, expected: int | None = 0, **variables: str) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **IDENTITY, **variables},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert expected is None or done.returncode == expected, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that holds what is installed, and the hooks."""
    repository = tmp_path_factory.mktemp("hooks")
    for name in ("pyproject.toml", "README.md", ".pre-commit-hooks.yaml"):
        shutil.copy(ROOT / name, repository)
    for name in ("perflint", "rules", "fixtures"):
        shutil.copytree(ROOT / name, repository / name, ignore=shutil.ignore_patterns("__pycache__"))
    run("git", "init", "-q", cwd=repository)
    run("git", "add", "-A", cwd=repository)
    run("git", "commit", "-qm", "the hooks", cwd=repository)
    return repository


@pytest.fixture(scope="module")
def home(hooks: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps the environment it has installed the hooks into."""
    folder = tmp_path_factory.mktemp("home")
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", str(folder / "asked"), "pathspec"],
        capture_output=True,
        check=False,
        timeout=120,
    )
    if asked.returncode:
        pytest.skip("no package index within reach, and pre-commit installs hooks from one")
    return folder


class Repository:
    """A project that uses the hooks."""

    def __init__(self, folder: Path, hooks: Path, home: Path) -> None:
        self.folder = folder
        self._home = home
        revision = run("git", "rev-parse", "HEAD", cwd=hooks).strip()
        configuration = f"repos:\n- repo: {hooks}\n  rev: {revision}\n  hooks:\n"
        configuration += "  - id: perflint\n    args: [--select, 'TPL303,TPL001']\n  - id: perflint-fix\n"
        self.write(".pre-commit-config.yaml", configuration)
        run("git", "init", "-q", cwd=folder)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def stage(self, *names: str) -> None:
        run("git", "add", *names, cwd=self.folder)

    def commit(self) -> None:
        run("git", "add", "-A", cwd=self.folder)
        run("git", "commit", "-qm", "state", cwd=self.folder)

    def pre_commit(self, hook: str, *, expected: int) -> str:
        # Without the checkout on the path: what runs is what pre-commit installed.
        command = (sys.executable, "-m", "pre_commit", "run", hook, "--color", "never")
        printed = run(*command, cwd=self.folder, expected=expected, PRE_COMMIT_HOME=str(self._home), PYTHONPATH="")
        return "".join(line for line in printed.splitlines(keepends=True) if not line.startswith("[INFO]"))


@pytest.fixture
def repository(tmp_path: Path, hooks: Path, home: Path) -> Repository:
    return Repository(tmp_path, hooks, home)


def test_only_what_is_staged_is_reported_with_the_heat_of_the_whole_program(repository: Repository) -> None:
    repository.write("train.py", TRAIN)
    repository.write("tidy.py", "def tidy():\n    pass\n")
    repository.write(
        "other.py", TRAIN.replace("tidy()\n", "gc.collect()\n").replace("from tidy", "import gc\nfrom tidy")
    )
    repository.commit()
    repository.write("tidy.py", TIDY)
    repository.stage("tidy.py")
    printed = repository.pre_commit("perflint", expected=1)
    assert "tidy.py:5:5  TPL303" in printed
    assert "train.py:5 `for batch in loader`" in printed
    assert "other.py:" not in printed
    # What was read of the other files is kept for the next time, and git is not shown where.
    assert (repository.folder / ".perflint_cache" / "cache.sqlite").exists()
    assert ".perflint_cache" not in run("git", "status", "--porcelain", cwd=repository.folder)
    assert repository.pre_commit("perflint", expected=1) == printed


def test_nothing_to_say_passes(repository: Repository) -> None:
    repository.write("train.py", TRAIN)
    repository.stage("train.py")
    assert "Passed" in repository.pre_commit("perflint", expected=0)


def test_fixes_are_made_and_have_to_be_staged(repository: Repository) -> None:
    repository.write("save.py", SAVE.replace("{}", COPIED))
    repository.stage("save.py")
    printed = repository.pre_commit("perflint-fix", expected=1)
    assert "files were modified by this hook" in printed
    assert "fixed save.py: TPL301" in printed
    assert (repository.folder / "save.py").read_text() == SAVE.replace("{}", PLAIN).replace("import copy\n", "")
    repository.stage("save.py")
    assert "Passed" in repository.pre_commit("perflint-fix", expected=0)
