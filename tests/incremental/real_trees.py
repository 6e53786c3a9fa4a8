#!/usr/bin/env python3
"""Random edits of copies of real trees: is what is found with the cache what is found without one?

usage: python tests/incremental/real_trees.py [--edits N] [--seed N] TREE...

Says for each edit how many files were inspected again. Exit code 1 when any report differs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from random_edits import Editor
from two_runs import checked

from perflint.finding import Report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", type=Path, nargs="+")
    parser.add_argument("--edits", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wrong = 0
    for tree in options.trees:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / tree.name
            shutil.copytree(tree, copy, symlinks=True, ignore=shutil.ignore_patterns(".git", ".perflint_cache"))
            (copy / ".git").mkdir(exist_ok=True)  # without a root there is no place for a cache
            before = Path.cwd()
            os.chdir(copy)
            wrong += _edit(copy, options.edits, options.seed)
            os.chdir(before)
    return 1 if wrong else 0


def _edit(root: Path, edits: int, seed: int) -> int:
    checked(cache=True)
    editor = Editor(root, seed, settings=False)
    wrong = 0
    for _ in range(edits):
        done = editor.edit()
        known, again = checked(cache=True)
        fresh, whole = checked(cache=False)
        same = known == fresh
        said = "same" if same else "DIFFERENT"
        print(f"{root.name}: {done}: {len(again)} of {len(whole)} inspected, {said}", flush=True)
        if not same:
            wrong += 1
            _tell(known, fresh)
    return wrong


def _tell(known: Report, fresh: Report) -> None:
    for name, ones, others in (("stale", known, fresh), ("missing", fresh, known)):
        for finding in set(ones.findings) - set(others.findings):
            print(f"    {name}: {finding.path}:{finding.span.line} {finding.code} {finding.route}")


if __name__ == "__main__":
    sys.exit(main())
