#!/usr/bin/env python3
"""How much CPU time `perflint check` takes over a tree, as a ratio to `ast.parse` alone on the same files.

usage: python tests/benchmarks/speed.py TREE [--rounds N] [--select RULES] [--rivals]

Every figure is user plus system time of a whole process, less what an empty one takes; the programs take turns, and
the ratio is taken round by round, so that a machine that slows down does so for all of them. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_READ = "import sys, {module}\nfor name in sys.stdin.read().split('\\0'):\n    try: {parse}(open(name, 'rb').read())\n"
_PARSE = _READ.format(module="ast", parse="ast.parse") + "    except (SyntaxError, ValueError): pass"
_LOSSLESS = _READ.format(module="libcst", parse="libcst.parse_module") + "    except Exception: pass"


def cpu_seconds(command: Sequence[str], cwd: Path, text: str = "") -> float:
    """User and system seconds of one finished child process."""
    before = os.times()
    subprocess.run(command, cwd=cwd, input=text, text=True, capture_output=True, check=False)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def programs(select: str | None, *, rivals: bool) -> dict[str, list[str]]:
    chosen = ["--select", select] if select else []
    perflint = [sys.executable, "-m", "perflint", "check", ".", "--output-format", "json", "--exit-zero", *chosen]
    found = {
        "ast.parse": [sys.executable, "-c", _PARSE],
        "perflint, cold, 1 process": [*perflint, "--no-cache", "--jobs", "1"],
    }
    if rivals:
        found["libcst parser alone"] = [sys.executable, "-c", _LOSSLESS]
        folder = Path(sys.executable).parent
        for name, arguments in (
            ("torchfix", ["--select", "ALL", "."]),
            ("fixit", ["lint", "."]),
            ("ruff", ["check", "--no-cache", "--exit-zero", "."]),
        ):
            program = shutil.which(name, path=f"{folder}{os.pathsep}{os.environ.get('PATH', '')}")
            if program:
                found[name] = [program, *arguments]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--select")
    parser.add_argument(
        "--rivals", action="store_true", help="measure libcst, and TorchFix, Fixit and ruff where installed"
    )
    options = parser.parse_args()
    files = sorted(str(path) for path in options.tree.resolve().rglob("*.py"))
    lines = sum(Path(name).read_bytes().count(b"\n") for name in files)
    commands = programs(options.select, rivals=options.rivals)
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(options.rounds):
        empty = cpu_seconds([sys.executable, "-c", "pass"], options.tree)
        for name, command in commands.items():
            text = "\0".join(files) if "-c" in command else ""
            seconds[name].append(cpu_seconds(command, options.tree, text) - empty)
    print(f"{options.tree.name}: {len(files)} files, {lines} lines, {options.rounds} rounds, medians")
    for name, values in seconds.items():
        ratios = [value / base for value, base in zip(values, seconds["ast.parse"])]
        print(f"  {name:28} {statistics.median(values):8.2f} s CPU  {statistics.median(ratios):7.2f} x ast.parse")
    return 0


if __name__ == "__main__":
    sys.exit(main())
