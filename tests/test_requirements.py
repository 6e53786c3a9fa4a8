"""The project's torch, read from its own files."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.requirements import pinned_torch, project_torch


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("requirements.txt", "torch==2.1.0\ntorchvision==0.16\n", (2, 1)),
        ("requirements.txt", "numpy\ntorch>=1.12,<3  # cuda\n", (1, 12)),
        ("requirements.txt", "torchvision==0.16\ntorch-geometric==2.4\npytorch-lightning==2.2\n", None),
        ("requirements.txt", "torch\n", None),
        ("requirements-dev.txt", "torch[opt]~=2.3.1\n", (2, 3)),
        ("pyproject.toml", '[project]\ndependencies = ["numpy", "torch>=2.2"]\n', (2, 2)),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^2.4"\n', (2, 4)),
        ("setup.py", 'setup(install_requires=["torch >= 1.10"])\n', (1, 10)),
        ("environment.yml", "dependencies:\n  - pytorch=2.3\n  - python=3.11\n", (2, 3)),
        ("uv.lock", '[[package]]\nname = "torch"\nversion = "2.6.0"\n', (2, 6)),
        ("Pipfile.lock", '{"default": {"torch": {"hashes": [], "version": "==2.0.1"}}}', (2, 0)),
    ],
)
def test_reads_the_version(tmp_path: Path, name: str, text: str, version: tuple[int, int] | None) -> None:
    (tmp_path / name).write_text(text)
    assert project_torch(tmp_path) == version


def test_a_lock_goes_before_a_requirement_and_the_oldest_requirement_counts(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=1.9\n")
    (tmp_path / "setup.py").write_text("'torch>=2.1'")
    assert project_torch(tmp_path) == (1, 9)
    (tmp_path / "poetry.lock").write_text('name = "torch"\nversion = "2.5.1"\n')
    assert project_torch(tmp_path) == (2, 5)


def test_no_files_say_nothing(tmp_path: Path) -> None:
    assert project_torch(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "version"), [("torch==1.13.1\n", (1, 13)), ("torch>=1.13\n", None), ("torch~=1.12.0\n", (1, 12))]
)
def test_a_floor_holds_a_project_to_nothing(tmp_path: Path, text: str, version: tuple[int, int] | None) -> None:
    (tmp_path / "requirements.txt").write_text(text)
    assert pinned_torch(tmp_path) == version
