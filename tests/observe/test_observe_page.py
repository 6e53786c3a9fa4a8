"""The examples of docs/observe.md for tests run as they stand there."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch", minversion="2.9")

_ROOT = Path(__file__).resolve().parents[2]


def _examples() -> list[str]:
    """The indented blocks of the section about tests."""
    section = (
        (_ROOT / "docs/observe.md").read_text(encoding="utf-8").partition("## In tests\n")[2].partition("\n## ")[0]
    )
    blocks = [""]
    for line in section.splitlines():
        if line.startswith("    ") or not line:
            blocks[-1] += line + "\n"
        elif blocks[-1].strip():
            blocks.append("")
    return [textwrap.dedent(one).strip() + "\n" for one in blocks if one.strip()]


def test_examples_of_the_page_run(tmp_path: Path) -> None:
    by_hand, by_marker = _examples()
    model = "@pytest.fixture\ndef model(perflint_device):\n    return torch.nn.Linear(3, 3).to(perflint_device)\n\n"
    (tmp_path / "test_by_hand.py").write_text(by_hand)
    (tmp_path / "test_by_marker.py").write_text(f"import pytest\nimport torch\n\n{model}{by_marker}")
    plugin = ["-p", "no:perflint", "-p", "perflint.observe.pytest_plugin", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugin, str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        cwd=_ROOT,
        timeout=300,
    )
    assert "2 passed" in run.stdout, run.stdout + run.stderr
