"""The README shows what its commands print.

With `PERFLINT_BLESS=1` in the environment the printed blocks are rewritten instead of compared.
"""

from __future__ import annotations

import os
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


def printed(arguments: list[str]) -> str:
    command = [sys.executable, "-m", "perflint", *arguments]
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=SAMPLE, env=environment, check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", PRINTED)
def test_the_readme_shows_what_is_printed(name: str) -> None:
    fence, arguments = PRINTED[name]
    wanted = f"```{fence}\n{printed(arguments).strip()}\n```" if fence else printed(arguments).strip()
    text = FILE.read_text(encoding="utf-8")
    before, start, rest = text.partition(f"<!-- {name} -->\n")
    shown, end, after = rest.partition(f"<!-- end of {name} -->")
    assert start
    assert end
    if os.environ.get("PERFLINT_BLESS"):
        FILE.write_text(f"{before}{start}{wanted}\n{end}{after}", encoding="utf-8")
    else:
        assert shown.strip() == wanted, f"`perflint {' '.join(arguments)}` prints something else now"


def test_the_sample_project_gives_what_is_promised() -> None:
    found = printed(["check", "--output-format", "json", "."])
    assert found.count('"code"') >= 12
    assert '"errors": []' in found


def test_the_test_line_is_what_ci_takes_from_the_readme() -> None:
    line = README.partition("<!-- test line -->\n")[2].partition("<!-- end -->")[0].strip()
    assert line.startswith("python3 -m venv .venv && ")
    assert line.endswith("-m pytest")
