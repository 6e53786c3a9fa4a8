#!/usr/bin/env python3
"""Hold perflint's findings against hand-made judgements of real packages.

usage: python tests/judgements/compare.py FOLDER [--rules TPL101,TPL201] [--unjudged]

FOLDER holds unpacked source distributions as `name-version` (timm-1.0.31). Each line of the *.jsonl files beside this
script judges one finding: {"package", "version", "path", "line", "rule", "right", "why"}. Printed per rule: how many
judged findings are still there, the share of them that is right, wrong ones that are gone, and findings that nobody has
judged yet (listed with --unjudged). Lines are compared exactly, so a judgement holds for its version only.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple


class Place(NamedTuple):
    package: str
    path: str
    line: int
    rule: str


def judgements(folder: Path) -> dict[Place, tuple[str, bool]]:
    """Version and verdict of every judged place."""
    found = {}
    for file in sorted(folder.glob("*.jsonl")):
        for text in file.read_text(encoding="utf-8").splitlines():
            item = json.loads(text)
            place = Place(_plain(item["package"]), item["path"], item["line"], item["rule"])
            found[place] = (item["version"], item["right"])
    return found


def findings(tree: Path, rules: str | None) -> list[Place]:
    """What perflint says of one package, all rules of both tiers."""
    command = [sys.executable, "-m", "perflint", "check", ".", "--output-format", "json", "--exit-zero", "--extra"]
    if rules:
        command += ["--select", rules]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    package = _plain(tree.name.rpartition("-")[0])
    found = json.loads(done.stdout)["findings"]
    # A defect that is printed once was judged at each of its places.
    found += [hop for item in found for hop in item["related"] if "code" in hop]
    return [Place(package, item["path"], item["line"], item["code"]) for item in found]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rules")
    parser.add_argument("--unjudged", action="store_true")
    options = parser.parse_args()
    judged = judgements(Path(__file__).parent)
    trees = {_plain(tree.name.rpartition("-")[0]): tree for tree in sorted(options.folder.iterdir()) if tree.is_dir()}
    judged = {
        place: verdict
        for place, verdict in judged.items()
        if place.package in trees and trees[place.package].name.endswith(f"-{verdict[0]}")
    }
    found: set[Place] = set()
    for package in sorted({place.package for place in judged}):
        found.update(findings(trees[package], options.rules))
    tally: dict[str, Counter[str]] = defaultdict(Counter)
    for place, (_, right) in judged.items():
        there = place in found
        tally[place.rule][
            ("right" if right else "wrong") if there else ("right, gone" if right else "wrong, gone")
        ] += 1
    for place in sorted(found):
        if place not in judged:
            tally[place.rule]["unjudged"] += 1
            if options.unjudged:
                print(f"unjudged {place.rule} {place.package} {place.path}:{place.line}")
    for rule in sorted(tally):
        row = tally[rule]
        seen = row["right"] + row["wrong"]
        share = f"{row['right'] / seen:4.0%} right" if seen else "none judged"
        print(f"{rule}  {share}  {dict(sorted(row.items()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
