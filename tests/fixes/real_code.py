#!/usr/bin/env python3
"""What `perflint fix --unsafe --extra --apply` does to copies of real trees.

usage: python tests/fixes/real_code.py TREE...

Each tree is copied to a temporary folder and fixed there. Counted are: files read, files changed, fixes that were
dropped, files that no longer parse, files that a second run changes again, and lines changed outside the edits that
`perflint check` had announced (and those of the rounds after the first). Exit code 1 when any of the last three is
not zero.
"""

from __future__ import annotations

import ast
import difflib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_PERFLINT = [sys.executable, "-m", "perflint"]


def main() -> int:
    broken = 0
    for tree in map(Path, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / tree.name
            shutil.copytree(tree, copy, symlinks=True, ignore=shutil.ignore_patterns(".git", ".perflint_cache"))
            broken += _try(tree.name, copy)
    return 1 if broken else 0


def _try(name: str, copy: Path) -> int:
    before = _texts(copy)
    announced = _announced(copy)
    said = _fix(copy)
    after = _texts(copy)
    changed = [path for path in before if before[path] != after[path]]
    unparsed = [path for path in changed if _parses(before[path]) and not _parses(after[path])]
    outside = sum(_outside(before[path], after[path], announced.get(path, set())) for path in changed)
    _fix(copy)
    again = [path for path, text in _texts(copy).items() if after[path] != text]
    dropped = sum("dropped" in line or "not made" in line for line in said.splitlines())
    print(
        f"{name}: {len(before)} files, {len(changed)} changed, {dropped} fixes dropped, {len(unparsed)} do not parse, "
        f"{len(again)} changed by a second run, {outside} lines changed outside of announced edits",
        flush=True,
    )
    for path in [*unparsed, *again]:
        print(f"  {path}")
    return len(unparsed) + len(again) + outside


def _texts(copy: Path) -> dict[str, bytes]:
    return {str(path.relative_to(copy)): path.read_bytes() for path in sorted(copy.rglob("*.py"))}


def _announced(copy: Path) -> dict[str, set[int]]:
    """The lines, counted from 1, that the fixes of the first round touch."""
    command = [*_PERFLINT, "check", ".", "--extra", "--output-format", "json", "--exit-zero", "--no-cache"]
    report = json.loads(subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False).stdout)
    lines: dict[str, set[int]] = {}
    for finding in report["findings"]:
        for edit in (finding.get("fix") or {}).get("edits", ()):
            lines.setdefault(finding["path"], set()).update(range(edit["line"], edit["end_line"] + 1))
    return lines


def _fix(copy: Path) -> str:
    command = [*_PERFLINT, "fix", ".", "--unsafe", "--extra", "--apply", "--no-cache"]
    run = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    return run.stdout + run.stderr


def _parses(text: bytes) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def _outside(before: bytes, after: bytes, announced: set[int]) -> int:
    """Old lines that changed although no announced edit touches them, byte for byte."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    touched: set[int] = set()
    for kind, start, end, _, _ in matcher.get_opcodes():
        if kind in ("replace", "delete"):
            touched.update(range(start + 1, end + 1))
    return len(touched - announced)


if __name__ == "__main__":
    sys.exit(main())
