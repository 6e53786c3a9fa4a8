#!/usr/bin/env python3
"""How the programs stand, by rule: how many there are, and how many of them a safe fix changes.

usage: python tests/soundness/standing.py [TEXT]     only programs whose name has TEXT in it
"""

from __future__ import annotations

import sys
from collections import Counter

from programs import FIXED, Runner, find_programs, fix, wrong_with


def main() -> int:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    counts: dict[str, Counter[str]] = {}
    runner = Runner()
    for program in find_programs():
        if wanted not in str(program):
            continue
        fixed = fix(program)
        count = counts.setdefault(program.code, Counter())
        count["programs"] += 1
        count["fixed"] += program.code in fixed.codes
        for text in wrong_with(program, fixed, runner):
            kind = "not fixed" if text.startswith("no safe") else "broken" if "itself" in text else "changed"
            count[kind] += 1
            print(f"{kind}: {program}\n    " + text.replace("\n", "\n    "), flush=True)
        count["ordinary"] += program.expect == FIXED
    runner.close()
    for code, count in counts.items():
        print(
            code, ", ".join(f"{key} {count[key]}" for key in ("programs", "ordinary", "fixed", "changed", "not fixed"))
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
