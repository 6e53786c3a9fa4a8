#!/usr/bin/env python3
"""Is a report the same, however a tree is checked?

usage: python tests/laws/same_report.py [--files N] TREE...

Checks each tree with all rules, without a cache: with three hash seeds, in one process and in four, with the files of
the command line in another order, and N files by themselves, chosen by a seed, some of them with findings and some
without. Says for each way what differs. Exit code 1 when anything does.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from perflint import engine
from perflint.finding import Finding
from perflint.project.discovery import Discovery, discover
from perflint.project.settings import load_settings
from perflint.rule_api.registry import load_rules

_CHECK = "check --extra --impact low --no-cache --exit-zero --output-format json".split()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", type=Path, nargs="+")
    parser.add_argument("--files", type=int, default=8)
    options = parser.parse_args()
    wrong = 0
    for tree in options.trees:
        for name, differences in _compared(tree, options.files):
            print(f"{tree.name}: {name}: {'same' if not differences else f'{len(differences)} DIFFERENT'}", flush=True)
            for item in differences[:10]:
                print(f"    {item}")
            wrong += len(differences)
    return 1 if wrong else 0


def _compared(tree: Path, files: int) -> Iterator[tuple[str, list[str]]]:
    whole = _report(tree, ["."], jobs=1)
    for seed in (1, 2):
        yield f"hash seed {seed}", _differences(whole, _report(tree, ["."], jobs=1, seed=seed))
    yield "four processes", _differences(whole, _report(tree, ["."], jobs=4))
    discovery = discover([tree], load_settings(tree))
    source = random.Random(0)
    tops = [item.name for item in tree.iterdir() if item.suffix == ".py" or any(item.rglob("*.py"))]
    source.shuffle(tops)
    in_order = _report(tree, sorted(tops), jobs=1)
    yield "another order", _differences(in_order, _report(tree, tops, jobs=1))
    together = _findings(discovery)
    found = [file for file in discovery.reported if any(item.path == file.display for item in together)]
    others = [file for file in discovery.reported if file not in found]
    for several in (found, others):
        for file in source.sample(several, min(files // 2, len(several))):
            own = [repr(item) for item in together if item.path == file.display]
            alone = [*map(repr, _findings(replace(discovery, reported=(file,))))]
            yield f"{file.display} alone", [] if own == alone else [*own, *alone]


def _findings(discovery: Discovery) -> tuple[Finding, ...]:
    """What all rules find in the files that are to be reported on."""
    rules = [rule() for rule in load_rules()]
    return engine.check(discovery, engine.Options(load_settings(Path.cwd()), rules, cache=False, jobs=1)).findings


def _report(tree: Path, paths: list[str], *, jobs: int, seed: int = 0) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    command = [sys.executable, "-m", "perflint", *_CHECK, "--jobs", str(jobs), *paths]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise SystemExit(done.stderr)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The findings and errors that only one of two reports has, or has elsewhere in its order."""
    if one["findings"] == other["findings"]:
        return []
    ones, others = ([json.dumps(item, sort_keys=True) for item in report["findings"]] for report in (one, other))
    lost = [f"- {item[:300]}" for item in ones if item not in others]
    won = [f"+ {item[:300]}" for item in others if item not in ones]
    return [*lost, *won] or ["the order"]


if __name__ == "__main__":
    sys.exit(main())
