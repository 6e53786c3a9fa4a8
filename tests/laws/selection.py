#!/usr/bin/env python3
"""Does a rule by itself find what it finds among all others?

usage: python tests/laws/selection.py [--rules TPL201,TPL202] [--show] TREE...

Checks each tree with all rules and with each rule alone, without a cache and in one process, and says for how many
findings of a rule the two differ. Exit code 1 when any do.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from perflint import engine
from perflint.finding import Finding
from perflint.project.discovery import discover
from perflint.project.settings import load_settings
from perflint.rule_api.registry import load_rules
from perflint.rule_api.rule import Rule


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", type=Path, nargs="+")
    parser.add_argument("--rules", default="", help="codes, all when not given")
    parser.add_argument("--show", action="store_true", help="the findings that differ")
    options = parser.parse_args()
    rules = [rule() for rule in load_rules()]
    wanted = set(options.rules.split(",")) if options.rules else {rule.code for rule in rules}
    wrong = 0
    for tree in options.trees:
        began = time.process_time()
        together = found(tree, rules)
        lost, won = Counter[Finding](), Counter[Finding]()
        for rule in rules:
            if rule.code in wanted:
                among = Counter(one for one in together if one.code == rule.code)
                alone = Counter(one for one in found(tree, [rule]) if one.code == rule.code)
                lost += among - alone
                won += alone - among
        for sign, several in (("-", lost), ("+", won)) if options.show else ():
            for one in several:
                print(f"  {sign} {one.path}:{one.span.line} {one.code} {one.message}")
        differing = max(lost.total(), won.total())
        spent = time.process_time() - began
        print(
            f"{tree}: {differing} of {len(together)} findings differ when a rule is alone ({spent:.0f} s)", flush=True
        )
        wrong += differing
    return 1 if wrong else 0


def found(tree: Path, rules: Sequence[Rule]) -> tuple[Finding, ...]:
    """What rules find in a tree."""
    before = Path.cwd()
    os.chdir(tree)
    try:
        settings = load_settings(Path.cwd())
        options = engine.Options(settings, rules, cache=False, everything=True, jobs=1)
        return engine.check(discover(["."], settings), options).findings
    finally:
        os.chdir(before)


if __name__ == "__main__":
    sys.exit(main())
