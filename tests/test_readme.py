"""The README shows what its commands print.

With `PERFLINT_BLESS=1` in the environment the printed blocks are rewritten instead of compared.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "fixtures" / "sample_project"
FILE = ROOT / "README.md"
README = FILE.read_text(encoding="utf-8")

#: What stands between `<!-- NAME -->` and `<!-- end of NAME -->`: its fence, and the command that prints it.
PRINTED = {
    "finding": ("text", ["check", "--select", "deepcopy-state-dict", "callbacks.py"]),
    "json": ("json", ["check", "--select", "TPL304", "--output-format", "json", "engine.py"]),
    "rules": ("", ["rules", "--output-format", "markdown"]),
}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample as a user has it: in no repository whose configuration leaves it out."""
    copy = tmp_path_factory.mktemp("readme") / "sample_project"
    shutil.copytree(SAMPLE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def printed(arguments: list[str], folder: Path) -> str:
    command = [sys.executable, "-m", "perflint", *arguments]
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", PRINTED)
def test_the_readme_shows_what_is_printed(name: str, sample: Path) -> None:
    fence, arguments = PRINTED[name]
    wanted = f"```{fence}\n{printed(arguments, sample).strip()}\n```" if fence else printed(arguments, sample).strip()
    text = FILE.read_text(encoding="utf-8")
    before, start, rest = text.partition(f"<!-- {name} -->\n")
    shown, end, after = rest.partition(f"<!-- end of {name} -->")
    assert start
    assert end
    assert "nothing found" not in wanted
    if os.environ.get("PERFLINT_BLESS"):
        FILE.write_text(f"{before}{start}{wanted}\n{end}{after}", encoding="utf-8")
    else:
        assert shown.strip() == wanted, f"`perflint {' '.join(arguments)}` prints something else now"


def test_the_sample_project_gives_what_is_promised(sample: Path) -> None:
    found = printed(["check", "--output-format", "json", "."], sample)
    assert found.count('"code"') >= 12
    assert '"errors": []' in found


def test_the_test_line_is_what_ci_takes_from_the_readme() -> None:
    line = README.partition("<!-- test line -->\n")[2].partition("<!-- end -->")[0].strip()
    assert line.startswith("python3 -m venv .venv && ")
    assert line.endswith("-m pytest")
