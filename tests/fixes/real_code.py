#!/usr/bin/env python3
"""What `perflint fix --unsafe --extra --apply` does to copies of real trees.

usage: python tests/fixes/real_code.py TREE...

Each tree is copied to a temporary folder and fixed there. Counted are: files read, files changed, fixes that were
dropped, files that no longer parse, files that a second run changes again, and lines changed outside the edits, which
each round is held to by itself. Exit code 1 when any of the last three is not zero.
"""

from __future__ import annotations

import ast
import difflib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from perflint.cli.fixing import fix_report
from perflint.engine import Options, check
from perflint.finding import Applicability
from perflint.fixes.rounds import Step
from perflint.project.discovery import discover
from perflint.project.settings import load_settings
from perflint.rule_api.registry import load_rules

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
    outside = _lines_outside(copy)
    said = _fix(copy)
    after = _texts(copy)
    changed = [path for path in before if before[path] != after[path]]
    unparsed = [path for path in changed if _parses(before[path]) and not _parses(after[path])]
    _fix(copy)
    again = [path for path, text in _texts(copy).items() if after[path] != text]
    dropped = sum("dropped" in line or "not made" in line for line in said.splitlines())
    print(
        f"{name}: {len(before)} files, {len(changed)} changed, {dropped} fixes dropped, {len(unparsed)} do not parse, "
        f"{len(again)} changed by a second run, {len(outside)} lines changed outside of the edits",
        flush=True,
    )
    for item in [*unparsed, *again, *outside]:
        print(f"  {item}")
    return len(unparsed) + len(again) + len(outside)


def _texts(copy: Path) -> dict[str, bytes]:
    return {str(path.relative_to(copy)): path.read_bytes() for path in sorted(copy.rglob("*.py"))}


def _lines_outside(copy: Path) -> list[str]:
    """Lines that a round changes although none of its edits touches them; nothing is written."""
    before = Path.cwd()
    os.chdir(copy)
    try:
        settings = load_settings(Path())
        discovery = discover(["."], settings)
        options = Options(settings, [rule() for rule in load_rules()], cache=False)
        outcome = fix_report(discovery, options, check(discovery, options), Applicability.UNSAFE).outcome
    finally:
        os.chdir(before)
    return [
        f"{file.source.path}:{line} in round {number}"
        for file in outcome.files
        for number, (step, text) in enumerate(zip(file.steps, [*[each.text for each in file.steps[1:]], file.text]), 1)
        for line in sorted(_touched(step.text, text) - _edited(step))
    ]


def _edited(step: Step) -> set[int]:
    edits = [edit for finding in step.taken if finding.fix is not None for edit in finding.fix.edits]
    return {line for edit in edits for line in range(edit.span.line, edit.span.end_line + 1)}


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


def _touched(before: str, after: str) -> set[int]:
    """The lines of `before`, counted from 1, that are not in `after` as they were, ends of lines included."""
    matcher = difflib.SequenceMatcher(
        None, before.splitlines(keepends=True), after.splitlines(keepends=True), autojunk=False
    )
    changes = [opcode for opcode in matcher.get_opcodes() if opcode[0] in ("replace", "delete")]
    return {line for _, start, end, _, _ in changes for line in range(start + 1, end + 1)}


if __name__ == "__main__":
    sys.exit(main())
