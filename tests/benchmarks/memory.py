#!/usr/bin/env python3
"""How much memory `perflint check` takes over a tree at its peak. Linux only: it reads /proc.

usage: python tests/benchmarks/memory.py TREE... [--processes 1,2] [--copies 1,2] [--format json]

A run without a cache, all core rules. *Greatest process* is the most that one process had in memory, what it shares
with others included; *all together* the most that the processes had between them at one moment, shared memory counted
once, looked at ten times a second. `--copies` is how often the tree is there, each time under a name of its own.
Nothing is asserted. Trees are never written to.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

_LOOK_SECONDS = 0.1
_COPIED = shutil.ignore_patterns(".git", ".perflint_cache", "__pycache__")


class Peak(NamedTuple):
    """Megabytes: of the process that had most, and of all processes at the worst moment."""

    one: float
    together: float


def measure(tree: Path, processes: int, output_format: str) -> Peak:
    """The memory of one run."""
    command = [sys.executable, "-m", "perflint", "check", ".", "--no-cache", "--exit-zero"]
    command += ["--jobs", str(processes), "--output-format", output_format]
    run = subprocess.Popen(command, cwd=tree, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    one = together = 0.0
    while run.poll() is None:
        family = _family(run.pid)
        one = max([one, *(_told(pid, "status", "VmHWM") for pid in family)])
        together = max(together, sum(_told(pid, "smaps_rollup", "Pss") for pid in family))
        time.sleep(_LOOK_SECONDS)
    if run.returncode:
        raise SystemExit(f"perflint ended with {run.returncode} in {tree}")
    return Peak(one, together)


def _family(pid: int) -> list[int]:
    """A process and all that it has started."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{parent}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
    return found


def _told(pid: int, file: str, name: str) -> float:
    """Megabytes that the kernel tells of a process, nothing of one that has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) / 1024
    return 0.0


def copied(tree: Path, folder: Path, copies: int) -> Path:
    """A project that holds a tree `copies` times."""
    made = folder / f"{tree.name}-x{copies}"
    made.mkdir()
    (made / "pyproject.toml").write_text("[project]\nname = 'copies'\n")
    for number in range(copies):
        shutil.copytree(tree, made / f"copy{number}", ignore=_COPIED)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--processes", default="1")
    parser.add_argument("--copies", default="")
    parser.add_argument("--format", default="json")
    options = parser.parse_args()
    print("| tree | files | processes | greatest process, MB | all together, MB |")
    print("|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for tree in options.trees:
            trees = [copied(tree, Path(folder), int(copies)) for copies in options.copies.split(",") if copies] or [
                tree
            ]
            for shown in trees:
                files = sum(1 for _ in shown.rglob("*.py"))
                for processes in map(int, options.processes.split(",")):
                    peak = measure(shown, processes, options.format)
                    print(
                        f"| {shown.name} | {files} | {processes} | {peak.one:.0f} | {peak.together:.0f} |", flush=True
                    )


if __name__ == "__main__":
    main()
