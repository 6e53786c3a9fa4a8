"""The project's torch, read from its own files."""

# ruff: noqa: E501 - one case a line

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.project.requirements import pinned_torch, project_torch, torch_at

POETRY = "[tool.poetry.dependencies]\n"
CONDA = "name: x\nchannels:\n  - pytorch\ndependencies:\n"


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        # Lists of pip.
        ("requirements.txt", "torch==2.1.0\ntorchvision==0.16\n", (2, 1)),
        ("requirements.txt", "numpy\ntorch>=1.12,<3  # cuda\n", (1, 12)),
        ("requirements.txt", "torch\n", None),
        ("requirements.txt", "Torch == 2.2.1+cu121\n", (2, 2)),
        ("requirements.txt", "torch>2.1\n", (2, 1)),
        ("requirements.txt", "torch==2.*\n", (2, 0)),
        ("requirements.txt", "torch>=1.7.*\n", (1, 7)),
        ("requirements.txt", "torch>=1.8,>=2.1,!=2.2.0\n", (2, 1)),
        ("requirements.txt", "torch>=2.1; extra == 'gpu'\n", (2, 1)),
        ("requirements.txt", "torch==2.1.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:01\n", (2, 1)),
        ("requirements.txt", "torch==2.1.0 --hash=sha256:00\n", (2, 1)),
        ("requirements.txt", "--extra-index-url https://x.y/whl/cu118\n-e .\ntorch~=2.1\n", (2, 1)),
        ("requirements.txt", "torch @ https://x.y/whl/torch-2.0.1%2Bcu118-cp310-cp310-linux_x86_64.whl\n", (2, 0)),
        ("requirements.txt", "https://x.y/torch-1.13.1-cp310-cp310-linux_x86_64.whl ; sys_platform == 'linux'\n", (1, 13)),
        ("requirements.txt", "./wheels/torch-2.4.0-cp310-none-macosx_11_0_arm64.whl\n", (2, 4)),
        ("requirements.txt", "torch @ git+https://github.com/pytorch/pytorch\n", None),
        ("requirements.txt", "torch==\n<<<<<<< HEAD\ntorch >> 3\n\x00\n", None),
        ("requirements-dev.txt", "torch[opt]~=2.3.1\n", (2, 3)),
        ("dev-requirements.txt", "torch~=2.3.1\n", (2, 3)),
        ("requirements/gpu.txt", "torch==2.4\n", (2, 4)),
        ("requirements.in", "torch>=2.4\n", (2, 4)),
        # What is named nearly so.
        ("requirements.txt", "torchvision==0.16\ntorch-geometric==2.4\npytorch-lightning==2.2\n", None),
        ("requirements.txt", "vector-quantize-pytorch==1.14.41\ntorch>=2.5.1\n", (2, 5)),
        ("requirements.txt", "lion.torch==1.1\nmy_torch==1.2\nsegmentation-models-pytorch==0.3\n", None),
        # What only refuses newer ones holds the project below them.
        ("requirements.txt", "torch<2.0\n", (1, 13)),
        ("requirements.txt", "torch<=2.1.2\n", (2, 1)),
        ("requirements.txt", "torch<2.5.1\n", (2, 5)),
        ("requirements.txt", "torch<3\n", None),
        # Markers that hold nowhere that the project is for.
        ("requirements.txt", "torch==1.4; python_version < '3'\ntorch>=2.1; python_version >= '3'\n", (2, 1)),
        ("requirements.txt", "torch>=1.9; sys_platform == 'cygwin'\n", None),
        ("requirements.txt", "torch==2.2.2; sys_platform == 'darwin' and platform_machine == 'x86_64'\ntorch==2.6\n", (2, 2)),
        ("pyproject.toml", '[project]\nrequires-python = ">=3.10"\ndependencies = ["torch<2; python_version < \'3.9\'", "torch>=2.3"]\n', (2, 3)),
        ("pyproject.toml", POETRY + 'python = "^3.10"\ntorch = [{version = "1.13", python = "<3.8"}, {version = "^2.1", python = ">=3.8"}]\n', (2, 1)),
        # pyproject.toml.
        ("pyproject.toml", '[project]\ndependencies = ["numpy", "torch>=2.2"]\n', (2, 2)),
        ("pyproject.toml", '[project.optional-dependencies]\ngpu = ["torch>=2.2"]\n', (2, 2)),
        ("pyproject.toml", '[dependency-groups]\ndev = [{include-group = "x"}, "torch>=2.2"]\n', (2, 2)),
        ("pyproject.toml", '[tool.pdm.dev-dependencies]\ntest = ["-e file:///x", "torch>=2.2"]\n', (2, 2)),
        ("pyproject.toml", '[tool.uv]\nconstraint-dependencies = ["torch>=2.2"]\n', (2, 2)),
        ("pyproject.toml", '[tool.uv]\noverride-dependencies = ["torch==2.3.0"]\n', (2, 3)),
        ("pyproject.toml", '[[tool.uv.dependency-metadata]]\nname = "flash-attn"\nrequires-dist = ["torch==1.1", "einops"]\n', None),
        ("pyproject.toml", '[[tool.uv.dependency-metadata]]\nname = "torch"\nversion = "1.4.0"\n', None),
        ("pyproject.toml", '[build-system]\nrequires = ["torch==1.4"]\n', None),
        ("pyproject.toml", '[tool.hatch.envs.test]\ndependencies = ["torch>=2.1"]\n', (2, 1)),
        ("pyproject.toml", POETRY + 'torch = "^2.4"\n', (2, 4)),
        ("pyproject.toml", POETRY + 'torch = "~2.4"\n', (2, 4)),
        ("pyproject.toml", POETRY + 'torch = "2.1.*"\n', (2, 1)),
        ("pyproject.toml", POETRY + 'torch = "2.1"\n', (2, 1)),
        ("pyproject.toml", POETRY + 'torch = "^1.13 || ^2.0"\n', (1, 13)),
        ("pyproject.toml", POETRY + 'torch = "*"\n', None),
        ("pyproject.toml", POETRY + 'torch = ">=2.0.0, !=2.0.1"\n', (2, 0)),
        ("pyproject.toml", POETRY + 'torch = {version = "^2.1", source = "cu118", optional = true}\n', (2, 1)),
        ("pyproject.toml", POETRY + 'torch = {url = "https://x.y/torch-2.3.0-cp311-cp311-linux_x86_64.whl"}\n', (2, 3)),
        ("pyproject.toml", POETRY + 'torch = {git = "https://x.y/pytorch.git"}\n', None),
        ("pyproject.toml", "[tool.poetry.group.dev.dependencies]\ntorch = '>=2.1'\n", (2, 1)),
        ("pyproject.toml", '[tool.poetry.dependencies.torch]\nversion = "^2.2"\n', (2, 2)),
        ("pyproject.toml", '[tool.pixi.dependencies]\npytorch = ">=2.2,<3"\n', (2, 2)),
        ("pixi.toml", '[feature.gpu.pypi-dependencies]\ntorch = ">=2.2"\n', (2, 2)),
        ("pyproject.toml", '[project]\ndependencies = "torch>=2.2"\n[tool]\nuv = 3\npoetry = []\n', None),
        ("pyproject.toml", '[project\ndependencies = ["torch>=2.2"]', None),
        ("Pipfile", '[packages]\ntorch = "==2.0.1"\n[requires]\npython_version = "3.10"\n', (2, 0)),
        # setuptools.
        ("setup.py", 'from setuptools import setup\nsetup(install_requires=["torch >= 1.10"])\n', (1, 10)),
        ("setup.py", 'wanted = ["numpy", "torch>=1.10"]\nsetup(install_requires=wanted)\n', (1, 10)),
        ("setup.py", 'setup(\n    install_requires="""\n        torch>=1.10  # why\n        numpy\n    """)\n', (1, 10)),
        ("setup.py", '"""torch>=1.1"""\nprint(f"torch>={x}")\nsetup(setup_requires=["torch==1.2"])\n', None),
        ("setup.py", "print 'torch>=1.1'\n", None),
        ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch>=1.10  # cuda\n", (1, 10)),
        ("setup.cfg", "[options.extras_require]\ngpu =\n    torch>=1.10\n", (1, 10)),
        ("setup.cfg", "install_requires = torch>=1.10\n", None),
        # conda.
        ("environment.yml", CONDA + "  - pytorch=2.3\n  - python=3.11\n", (2, 3)),
        ("environment.yml", CONDA + "  - conda-forge::pytorch=2.3=py3.10_cuda11.8*\n", (2, 3)),
        ("environment.yml", CONDA + "- pytorch >=2.1,<3\n", (2, 1)),
        ("environment.yml", CONDA + '- "pytorch==2.1.0"  # why\n', (2, 1)),
        ("environment.yml", CONDA + "  - pytorch 2.1.*\n", (2, 1)),
        ("environment.yml", CONDA + "  - pytorch[version='>=2.1',build=*cuda*]\n", (2, 1)),
        ("environment.yml", CONDA + "  - pytorch-cuda=11.8\n  - pytorch-lightning=1.9\n  - pytorch\n", None),
        ("environment.yml", CONDA + "  - pip\n  - pip:\n    - torch==2.2.0\n    - numpy\n", (2, 2)),
        ("environment-gpu.yaml", CONDA + "  - pip:\n      - torch @ https://x.y/torch-2.2.0-cp311-cp311-linux_x86_64.whl\n", (2, 2)),
        ("environment.yml", "variables:\n  torch: 1.1\nname: pytorch=1.2\n", None),
        # Locks.
        ("uv.lock", '[[package]]\nname = "torch"\nversion = "2.6.0"\n', (2, 6)),
        ("uv.lock", '[[package]]\nname = "torch"\nversion = "2.6.0"\n\n[[package]]\nname = "torch"\nversion = "2.2.2"\n', (2, 2)),
        ("pylock.toml", '[[packages]]\nname = "torch"\nversion = "2.6.0"\n', (2, 6)),
        ("Pipfile.lock", '{"default": {"torch": {"hashes": [], "version": "==2.0.1"}}}', (2, 0)),
        ("conda-lock.yml", "- name: pytorch\n  version: 2.1.0\n  manager: conda\n", (2, 1)),
        ("pixi.lock", "packages:\n- conda: https://x.y/linux-64/pytorch-2.4.1-cuda120_py311.conda\n", (2, 4)),
    ],
)  # fmt: skip
def test_reads_the_version(tmp_path: Path, name: str, text: str, version: tuple[int, int] | None) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    assert project_torch(tmp_path) == version


def test_the_lowest_that_the_project_supports_counts_and_says_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("numpy\n\ntorch>=1.9\n")
    (tmp_path / "setup.py").write_text("setup(install_requires=['torch>=2.1'])")
    found = torch_at(tmp_path).lowest
    assert found is not None
    assert (found.version, found.file.name, found.line) == ((1, 9), "requirements.txt", 3)


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("pyproject.toml", '[project]\nname = "pytorch-things"\ndependencies = [\n  "torchvision",\n  "torch>=2.2",\n]\n', 5),
        ("pyproject.toml", '[tool.poetry]\nname = "torch"\n' + POETRY + '\ntorch = {version = "^2.2"}\n', 5),
        ("setup.py", "setup(\n    install_requires=[\n        'numpy',\n        'torch>=1.9',\n])\n", 4),
        ("requirements.txt", "numpy\ntorch==2.1.0 \\\n  --hash=sha256:00\n", 2),
        ("environment.yml", CONDA + "  - pip:\n    - torch==2.2.0\n", 6),
        ("uv.lock", 'version = 1\n\n[[package]]\nname = "torch"\nversion = "2.6.0"\n', 4),
    ],
)  # fmt: skip
def test_says_in_which_line_it_stands(tmp_path: Path, name: str, text: str, line: int) -> None:
    (tmp_path / name).write_text(text)
    found = torch_at(tmp_path).lowest
    assert found is not None
    assert (found.file, found.line) == (tmp_path / name, line)


def test_a_lock_says_what_no_requirement_says(tmp_path: Path) -> None:
    (tmp_path / "poetry.lock").write_text('name = "torch"\nversion = "2.5.1"\n')
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["torch"]\n')
    assert project_torch(tmp_path) == (2, 5)
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["torch>=1.9"]\n')
    assert project_torch(tmp_path) == (1, 9)
    assert pinned_torch(tmp_path) == (2, 5)


def test_lists_include_others_under_any_name_and_in_a_ring(tmp_path: Path) -> None:
    (tmp_path / "deps").mkdir()
    (tmp_path / "requirements.txt").write_text("-r deps/base.list\n--constraint=deps/held.list\n-r missing.txt\n-r .\n")
    (tmp_path / "deps" / "base.list").write_text("torch\n-r ../requirements.txt\n-r https://x.y/z.txt\n")
    (tmp_path / "deps" / "held.list").write_text("torch==2.3.1\n")
    assert project_torch(tmp_path) == (2, 3)


def test_requirements_that_a_build_reads_from_other_files(tmp_path: Path) -> None:
    (tmp_path / "core.list").write_text("torch>=2.3\n")
    (tmp_path / "pyproject.toml").write_text('[tool.setuptools.dynamic]\ndependencies = {file = ["core.list"]}\n')
    assert project_torch(tmp_path) == (2, 3)
    (tmp_path / "pyproject.toml").unlink()
    (tmp_path / "setup.cfg").write_text("[options]\ninstall_requires = file: core.list\n")
    assert project_torch(tmp_path) == (2, 3)


def test_a_list_frozen_in_powershell_is_read(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("numpy==2.0\ntorch==2.1.0\n", encoding="utf-16")
    assert project_torch(tmp_path) == (2, 1)


def test_what_is_no_file_or_no_text_says_nothing(tmp_path: Path) -> None:
    assert project_torch(tmp_path) is None
    (tmp_path / "requirements.txt").mkdir()
    (tmp_path / "setup.py").write_bytes(b"\xff\xfe\x00torch>=1.0")
    (tmp_path / "environment.yml").symlink_to("environment.yml")
    assert project_torch(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("torch==1.13.1\n", (1, 13)),
        ("torch>=1.13\n", None),
        ("torch~=1.12.0\n", (1, 12)),
        ("torch~=1.12\n", (1, 13)),
        ("torch>=1.12,<2\n", (1, 13)),
        ("torch>=1.12,<=2.1\n", (2, 1)),
        ("torch<2\n", (1, 13)),
        ("torch==1.12.1; sys_platform == 'linux'\ntorch==1.13; sys_platform != 'linux'\n", (1, 13)),
        ("torch==1.13\ntorch>=1.9\n", None),
    ],
)
def test_a_floor_holds_a_project_to_nothing(tmp_path: Path, text: str, version: tuple[int, int] | None) -> None:
    (tmp_path / "requirements.txt").write_text(text)
    assert pinned_torch(tmp_path) == version
