"""How much of what is told of the fixtures is told of each of their rewrites.

Run from `tests/laws`: `python -m rewriting.measure [--only NAME] [--case PART] [-v]`.
"""

from __future__ import annotations

import argparse
from collections import Counter

from rewriting import COOLING
from rewriting.over import Difference, changes, differences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="rewrites whose names hold this")
    parser.add_argument("--case", default="", help="programs whose names hold this")
    parser.add_argument("-v", action="store_true", help="every finding that is lost, new or, where none should, stays")
    options = parser.parse_args()
    for name, change in changes().items():
        if options.only in name:
            _measure(name, [*differences(change, options.case)], verbose=options.v)


def _measure(name: str, found: list[Difference], *, verbose: bool) -> None:
    wrong = Counter(said.split()[0] for each in found for said in each.wrong(name))
    counts = ", ".join(f"{wrong[word]} {word}" for word in (("stays",) if name in COOLING else ("lost", "new")))
    print(f"{name}: {len(found)} programs, {sum(each.findings for each in found)} findings, {counts}", flush=True)
    for each in found if verbose else ():
        for said in each.wrong(name):
            print("  ", each.case, said)


if __name__ == "__main__":
    main()
