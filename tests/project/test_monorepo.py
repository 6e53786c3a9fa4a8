"""One repository with several packages: what is said of a file depends on the file, not on what else was named."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from perflint.cli.app import run

#: Runs every step, by a loop in another package.
MEMORY = "import gc\n\n\ndef tidy():\n    gc.collect()\n"
TRAIN = """from a.memory import tidy


def train(model, loader, optimizer):
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()
        tidy()
"""
PLAIN = '[project]\nname = "x"\nversion = "1"\n'


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two packages, each with a pyproject.toml, of which one calls the other."""
    root = tmp_path / "repository"
    write(
        root,
        {
            "pyproject.toml": PLAIN,
            "packages/a/pyproject.toml": PLAIN,
            "packages/a/a/__init__.py": "",
            "packages/a/a/memory.py": MEMORY,
            "packages/b/pyproject.toml": PLAIN,
            "packages/b/b/__init__.py": "",
            "packages/b/b/train.py": TRAIN,
        },
    )
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    monkeypatch.chdir(root)
    return root


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """`FILE:LINE CODE` of everything that is found, files by name."""
    capsys.readouterr()
    assert run(["check", "--no-cache", "--output-format", "json", *arguments]) in {0, 1}
    report = json.loads(capsys.readouterr().out)
    assert not report["errors"]
    return [f"{Path(one['path']).name}:{one['line']} {one['code']}" for one in report["findings"]]


SAID = ["memory.py:5 TPL303"]


@pytest.mark.parametrize("path", [".", "packages", "packages/a", "packages/a/a", "packages/a/a/memory.py"])
def test_a_nested_configuration_keeps_the_heat(repository: Path, capsys: pytest.CaptureFixture[str], path: str) -> None:
    assert found(capsys, path) == SAID


@pytest.mark.parametrize("inner", ["perflint.toml", "pyproject.toml"])
def test_nor_does_a_nested_table_of_ours_end_the_program(
    repository: Path, capsys: pytest.CaptureFixture[str], inner: str
) -> None:
    write(repository, {f"packages/a/{inner}": "" if inner == "perflint.toml" else "[tool.perflint]\n"})
    for path in (".", "packages/a", "packages/a/a/memory.py"):
        assert found(capsys, path) == SAID


@pytest.mark.parametrize("folder", ["packages", "packages/a", "packages/a/a", "packages/b/b", ".."])
def test_the_working_directory_makes_no_difference(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.chdir(folder)
    assert found(capsys, str(repository / "packages/a/a/memory.py")) == SAID
    assert found(capsys, str(repository)) == SAID


def test_without_git_the_outermost_configuration_marks_the_program(
    tmp_path: Path, repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / ".git").rename(tmp_path / "elsewhere")
    assert found(capsys, "packages/a/a/memory.py") == found(capsys, ".") == SAID
    # A configuration in somebody's home is for what is theirs, not for every project below it.
    monkeypatch.setenv("HOME", str(repository))
    assert found(capsys, "packages/a/a/memory.py") == []


def test_a_repository_that_ignores_a_project_has_no_say_in_it(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / ".gitignore").write_text("/packages/\n")
    (repository / "packages/pyproject.toml").write_text(PLAIN)
    (repository / "pyproject.toml").unlink()
    (repository / "train.py").write_text("def broken(:\n")
    assert found(capsys, "packages/a/a/memory.py") == SAID


def test_each_file_has_the_nearest_settings(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        repository,
        {
            "pyproject.toml": "[tool.perflint]\nignore = ['TPL303']\n",
            "packages/a/pyproject.toml": "[tool.perflint]\nselect = ['TPL303']\n",
            "packages/b/b/own.py": TRAIN.replace("from a.memory", "from b.own_memory"),
            "packages/b/b/own_memory.py": MEMORY,
        },
    )
    for path in (".", "packages/a", "packages/a/a/memory.py"):
        assert found(capsys, path) == SAID
    assert found(capsys, "packages/b") == []
    # The command line goes before all of them, and one that it names governs everything.
    assert found(capsys, "--ignore", "TPL303", ".") == []
    assert found(capsys, "--select", "TPL303", ".") == [*SAID, "own_memory.py:5 TPL303"]
    assert found(capsys, "--config", "pyproject.toml", ".") == []
    assert found(capsys, "--config", "packages/a/pyproject.toml", ".") == [*SAID, "own_memory.py:5 TPL303"]


def test_ignores_for_files_and_confidence_are_the_nearest(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(repository, {"packages/a/perflint.toml": "[per-file-ignores]\n'a/memory.py' = ['TPL303']\n"})
    for path in (".", "packages/a/a/memory.py"):
        assert found(capsys, path) == []
    # A loop that does not train may be one over anything.
    likely = TRAIN.replace("model(batch).sum().backward()", "model(batch)").replace("optimizer.step()", "save(batch)")
    write(repository, {"packages/a/perflint.toml": "confidence = 'high'\n", "packages/b/b/train.py": likely})
    for path in (".", "packages/a/a/memory.py"):
        assert found(capsys, path) == []
        assert found(capsys, "--confidence", "low", path) == SAID


def test_what_any_configuration_around_excludes_is_left_out(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        repository,
        {
            "pyproject.toml": "[tool.perflint]\nexclude = ['packages/a/a/made.py']\n",
            "packages/a/pyproject.toml": "[tool.perflint]\nexclude = ['drafts/']\n",
            "packages/a/a/made.py": "import gc\nfrom b.train import train\nfor batch in loader:\n    gc.collect()\n",
            "packages/a/drafts/one.py": "import gc\nfor batch in loader:\n    gc.collect()\n",
        },
    )
    assert found(capsys, ".") == SAID
    monkeypatch.chdir("packages/a")
    assert found(capsys, ".") == SAID
    # pre-commit names every staged file.
    assert found(capsys, "a/made.py", "drafts/one.py") == ["made.py:4 TPL303", "one.py:3 TPL303"]
    assert found(capsys, "--force-exclude", "a/made.py", "drafts/one.py", "a/memory.py") == SAID
    assert found(capsys, "--force-exclude", "a/made.py") == []


def test_each_package_has_its_own_torch(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    zeroing = TRAIN.replace("from a.memory import tidy", "import torch").replace(
        "tidy()", "torch.optim.SGD(model.parameters()).zero_grad()"
    )
    write(
        repository,
        {
            "packages/a/pyproject.toml": '[project]\ndependencies = ["torch==1.13.1"]\n',
            "packages/b/pyproject.toml": '[project]\ndependencies = ["torch>=2.2"]\n',
            "packages/a/a/zero.py": zeroing,
            "packages/b/b/zero.py": zeroing,
        },
    )
    both = ("--select", "TPL307", ".")
    run(["check", "--no-cache", "--output-format", "json", *both])
    report = json.loads(capsys.readouterr().out)
    assert [one["path"] for one in report["findings"]] == ["packages/a/a/zero.py"]
    assert found(capsys, "--select", "TPL307", "packages/a/a/zero.py") == ["zero.py:8 TPL307"]
    assert found(capsys, "--select", "TPL307", "packages/b/b/zero.py") == []
    assert run(["config", "show", "packages/a/a"]) == 0
    assert "packages/a/pyproject.toml:2" in capsys.readouterr().out


def test_a_template_of_a_configuration_is_passed_over(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(repository, {"packages/a/a/pyproject.toml": "[project]\nname = {{ name }}\n"})
    assert found(capsys, ".") == found(capsys, "packages/a/a/memory.py") == SAID


def test_a_cache_does_not_mix_settings_up(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def cached(*arguments: str) -> int:
        run(["check", "--output-format", "json", *arguments])
        return len(json.loads(capsys.readouterr().out)["findings"])

    assert cached(".") == cached(".") == cached("packages/a/a/memory.py") == 1
    write(repository, {"packages/a/perflint.toml": "ignore = ['TPL303']\n"})
    assert cached(".") == cached("packages/a/a/memory.py") == 0
