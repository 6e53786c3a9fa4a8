#!/usr/bin/env python3
"""Do the kinds of expressions depend on the order in which they are asked for?

usage: python tests/laws/order.py [--show] [--each] TREE...

Each file's expressions are asked forward, in reverse and shuffled by three seeds. Says for each tree how many there
are, how many got different answers and how long it took. With `--each` what stands in a folder of TREE, a file or a
folder, is a program by itself (as fixtures are). Exit code 1 when any answers differ.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from asking import differences, folder_texts, linked, programs_in


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", type=Path, nargs="+")
    parser.add_argument("--show", action="store_true", help="every expression with its answers")
    parser.add_argument("--each", action="store_true", help="each file or folder in a tree is a program by itself")
    options = parser.parse_args()
    wrong = 0
    for tree in options.trees:
        total = differing = 0
        began = time.process_time()
        for texts in (
            (texts for group in sorted(tree.iterdir()) for texts in programs_in(group))
            if options.each
            else [folder_texts(tree)]
        ):
            program, trees = linked(texts)
            for asked, found in differences(program, trees):
                total += asked
                differing += len(found)
                for item in found if options.show else ():
                    print(f"  {item}")
        spent = time.process_time() - began
        print(f"{tree}: {differing} of {total} expressions differ ({spent:.0f} s)")
        wrong += differing
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
