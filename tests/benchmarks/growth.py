#!/usr/bin/env python3
"""How the cost of one long function grows: branches, loops, moves, reads and evaluations, twice as many each time.

usage: python tests/benchmarks/growth.py [--smallest N] [--doublings N]

For each shape of code of `tests/test_growth.py` it prints the seconds of processor time of `perflint check`, less what
an empty file takes, and by how much twice the code costs more: 2 is linear. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import test_growth

_COMMAND = [sys.executable, "-m", "perflint", "check", ".", "--no-cache", "--exit-zero", "--output-format", "json"]


def seconds(text: str) -> float:
    """Processor time of a check of one file with that text."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(text, encoding="utf-8")
        before = os.times()
        subprocess.run(_COMMAND, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--smallest", type=int, default=50)
    parser.add_argument("--doublings", type=int, default=2)
    options = parser.parse_args()
    counts = [options.smallest * 2**step for step in range(options.doublings + 1)]
    empty = min(seconds("") for _ in range(3))
    for shape in test_growth.SHAPES:
        spent = [max(seconds(shape(count)) - empty, 0.01) for count in counts]
        ratios = [f"x{later / earlier:.1f}" for earlier, later in itertools.pairwise(spent)]
        told = ", ".join(f"{count}: {time:.2f} s" for count, time in zip(counts, spent))
        print(f"{shape.__name__.strip('_'):12} {told}  {' '.join(ratios)}")


if __name__ == "__main__":
    main()
