from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perflint.fixes.diff import file_diff


def test_a_diff_reads_as_usual() -> None:
    assert file_diff("pkg/a.py", "a\nb\nc\n", "a\nx\nc\n") == (
        "--- pkg/a.py\n+++ pkg/a.py\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"
    )


def test_nothing_changed_is_no_diff() -> None:
    assert not file_diff("a.py", "a\n", "a\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\nc\n", "a\nx\nc\n"),
        ("a\r\nb\r\n", "a\r\nx\r\ny\r\n"),
        ("a\nb", "a\nx"),
        ("a\nb", "a\nb\nc"),
        ("a\fb\x0b\n\u2028c\nd\n", "a\fb\x0b\n\u2028x\nd\n"),
        ("", "import torch\n"),
        ("a\n", ""),
    ],
)
def test_git_applies_the_diff(tmp_path: Path, before: str, after: str) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(before.encode())
    diff = file_diff("a.py", before, after).encode()
    command = ["git", "apply", "-p0", "--unidiff-zero", "--whitespace=nowarn", "-"]
    subprocess.run(command, input=diff, cwd=tmp_path, check=True)
    assert (file.read_bytes() if file.exists() else b"") == after.encode()
