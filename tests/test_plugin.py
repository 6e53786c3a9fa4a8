"""The example of a third-party rule package, built, installed beside perflint and run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PLUGIN = ROOT / "fixtures" / "example_plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages with nothing but the plug-in."""
    pytest.importorskip("setuptools", minversion="77")
    source = tmp_path_factory.mktemp("source") / "plugin"
    shutil.copytree(PLUGIN, source, ignore=shutil.ignore_patterns("__pycache__"))
    build = "from setuptools.build_meta import build_wheel; build_wheel('dist')"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True, timeout=300)
    (wheel,) = (source / "dist").glob("*.whl")
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


def run(installed: Path, *command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(installed), str(ROOT)))},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_its_rule_stands_among_the_others(installed: Path, tmp_path: Path) -> None:
    listed = json.loads(run(installed, "perflint", "rules", "--output-format", "json", cwd=tmp_path).stdout)
    by_code = {one["code"]: one for one in listed}
    assert by_code["ACME001"]["name"] == "process-in-hot-loop"
    assert by_code["ACME001"]["fix"] == "unsafe"
    assert "TPL303" in by_code


def test_it_finds_what_its_example_shows(installed: Path, tmp_path: Path) -> None:
    (example,) = PLUGIN.rglob("ACME001*/example.py")
    (tmp_path / "pyproject.toml").touch()
    shutil.copy(example, tmp_path / "train.py")
    done = run(installed, "perflint", "check", "--output-format", "json", cwd=tmp_path)
    assert [one["code"] for one in json.loads(done.stdout)["findings"]] == ["ACME001"]
    silent = run(installed, "perflint", "check", "--ignore", "process-in-hot-loop", cwd=tmp_path)
    assert silent.returncode == 0
    sarif = json.loads(run(installed, "perflint", "check", "--output-format", "sarif", cwd=tmp_path).stdout)
    (extension,) = sarif["runs"][0]["tool"]["extensions"]
    assert [rule["id"] for rule in extension["rules"]] == ["ACME001", "ACME002"]


def test_a_rule_of_it_matches_and_fixes_with_libcst(installed: Path, tmp_path: Path) -> None:
    folder = next(PLUGIN.rglob("ACME002-*"))
    (tmp_path / "pyproject.toml").touch()
    shutil.copy(folder / "example.py", tmp_path / "train.py")
    run(installed, "perflint", "fix", "--unsafe", "--apply", "--select", "ACME002", cwd=tmp_path)
    assert "model(batch, replay.popleft()).backward()" in (tmp_path / "train.py").read_text()
    listed = run(
        installed, "libcst.tool", "codemod", "--help", "-x", "perflint.codemods.pop_from_the_front.Fix", cwd=tmp_path
    )
    assert "ACME002 pop-from-the-front" in listed.stdout


def test_its_page_has_its_example(installed: Path, tmp_path: Path) -> None:
    page = run(installed, "perflint", "explain", "ACME001", cwd=tmp_path).stdout
    assert "Why is this slow?" in page
    assert '    subprocess.run(["nvidia-smi"])\n' in page
    assert "Use instead (`perflint fix --unsafe` makes this change; review it):" in page


def test_its_own_tests_pass(installed: Path, tmp_path: Path) -> None:
    shutil.copytree(PLUGIN / "tests", tmp_path / "tests")
    done = run(installed, "pytest", "-q", "-p", "no:cacheprovider", "tests", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout
