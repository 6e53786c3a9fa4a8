"""What gets installed: the package map, the wheel's content, and a command that starts without anything heavy."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: Top-level folders that are installed inside the package.
MAPPED = {"rules": "perflint.rules", "fixtures": "perflint.fixtures"}


def declared_packages() -> list[str]:
    # The one list is plain enough to be read without a TOML parser, which Python 3.10 lacks.
    found = re.search(
        r"^packages = (\[.*?^\])", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert found is not None
    packages: list[str] = ast.literal_eval(found[1])
    return packages


def test_every_package_folder_is_declared() -> None:
    folders = {file.parent.relative_to(ROOT) for file in (ROOT / "perflint").rglob("__init__.py")}
    names = {".".join(folder.parts) for folder in folders}
    for folder, package in MAPPED.items():
        below = {file.parent.relative_to(ROOT / folder) for file in (ROOT / folder).glob("**/__init__.py")}
        # Cases may hold packages of their own; those are data.
        names |= {".".join([package, *path.parts]) for path in below if folder == "rules" or not path.parts}
    assert sorted(declared_packages()) == sorted(names)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, unpacked. Built in a copy, since building leaves files behind."""
    pytest.importorskip("setuptools", minversion="77")
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    for name in ("perflint", *MAPPED):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    # Byte code lies around in any checkout in which something ran.
    stray = source / "fixtures" / "TPL000-stray" / "__pycache__" / "example.cpython-311.pyc"
    stray.parent.mkdir(parents=True)
    stray.touch()
    build = "from setuptools.build_meta import build_wheel; build_wheel('dist')"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True, timeout=300)
    (built,) = (source / "dist").glob("*.whl")
    unpacked = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(unpacked)
    return unpacked


def test_the_wheel_puts_everything_below_perflint(wheel: Path) -> None:
    version = re.search(r'__version__ = "(.+)"', (ROOT / "perflint" / "__init__.py").read_text(encoding="utf-8"))
    assert version is not None
    assert {path.name for path in wheel.iterdir()} == {"perflint", f"torch_perflint-{version[1]}.dist-info"}


def test_the_wheel_holds_every_module_and_rule(wheel: Path) -> None:
    for folder, target in {"perflint": "perflint", "rules": "perflint/rules"}.items():
        wanted = {file.relative_to(ROOT / folder) for file in (ROOT / folder).rglob("*.py")}
        assert wanted <= {file.relative_to(wheel / target) for file in (wheel / target).rglob("*.py")}
    assert (wheel / "perflint" / "py.typed").exists()


def test_the_wheel_holds_the_documented_cases_and_no_test_data(wheel: Path) -> None:
    installed = wheel / "perflint" / "fixtures"
    for folder in (ROOT / "fixtures").glob("TPL*-*"):
        wanted = {file.relative_to(folder) for file in folder.rglob("*") if file.is_file()}
        wanted = {file for file in wanted if "__pycache__" not in file.parts}
        found = {file.relative_to(installed / folder.name) for file in (installed / folder.name).rglob("*")}
        assert wanted <= found
    assert not list(wheel.rglob("__pycache__"))
    assert not (installed / "_engine").exists()
    assert not (installed / "sample_project").exists()


def run_python(code: str, cwd: Path, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, *options, "-c", code], cwd=cwd, check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_unpacked_wheel_finds_its_own_rules(wheel: Path, tmp_path: Path) -> None:
    # A foreign `rules` beside the package must never be taken for ours.
    (wheel / "rules").mkdir(exist_ok=True)
    (wheel / "rules" / "__init__.py").write_text("raise AssertionError('foreign')")
    try:
        code = f"import sys; sys.path.insert(0, {str(wheel)!r}); import perflint.rules; print(perflint.rules.__file__)"
        assert Path(run_python(code, tmp_path).strip()) == wheel / "perflint" / "rules" / "__init__.py"
    finally:
        shutil.rmtree(wheel / "rules")


def test_no_module_called_rules_can_be_imported(tmp_path: Path) -> None:
    code = "import importlib.util as u; print(u.find_spec('rules'), u.find_spec('fixtures'))"
    # Isolated, since a PYTHONPATH that names the checkout is the user's own doing.
    assert run_python(code, tmp_path, "-I").strip() == "None None"


def test_a_checkout_finds_its_rules_without_being_installed(tmp_path: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import perflint.rules; print(perflint.rules.__file__)"
    assert Path(run_python(code, tmp_path).strip()) == ROOT / "rules" / "__init__.py"


def test_no_test_loads_a_second_copy_of_the_rules() -> None:
    assert not [name for name in sys.modules if name.partition(".")[0] == "rules"]


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_the_command_answers_without_loading_anything_heavy(argument: str, tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from perflint.cli import main\n"
        "sys.argv = ['perflint', ARGUMENT]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('loaded:', *sorted(sys.modules))\n"
    ).replace("ARGUMENT", repr(argument))
    loaded = set(run_python(code, tmp_path).rpartition("loaded:")[2].split())
    assert not {name for name in loaded if name.startswith("perflint.rules.")}
    assert not loaded & {
        "libcst",
        "numpy",
        "pathspec",
        "rich",
        "scipy",
        "torch",
        "perflint.program",
        "perflint.analysis.values",
    }


def test_a_check_ends_with_its_whole_report_its_exit_code_and_what_was_to_be_done_at_the_end(tmp_path: Path) -> None:
    source = (
        "import torch\nfrom torch.utils.data import DataLoader\n\n"
        "def train(model, data):\n    loader = DataLoader(data)\n    for batch in loader:\n"
        "        loss = model(batch.cuda())\n        loss.backward()\n        print(loss.item())\n"
    )
    (tmp_path / "train.py").write_text(source, encoding="utf-8")
    code = (
        "import atexit, sys\n"
        "from perflint.cli import main\n"
        "atexit.register(print, 'closed')\n"
        "sys.argv = ['perflint', 'check', '.', '--no-cache', '--impact', 'low', '--output-format', 'json']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60
    )
    report, _, closed = done.stdout.rpartition("}")
    assert json.loads(report + "}")["findings"]
    assert (closed.strip(), done.returncode) == ("closed", 1)
