#!/usr/bin/env python3
"""How much CPU time `perflint check` takes over a tree, as a ratio to `ast.parse` alone on the same files.

usage: python tests/benchmarks/speed.py TREE... [--rounds N] [--modes cold,warm,changed] [--processes 1,2]
                                        [--select RULES] [--rivals] [--markdown]
       python tests/benchmarks/speed.py --growth TREE [--rounds N]

`cold` runs without a cache, `warm` again on a tree in which nothing changed, `changed` after one expression of a file
in the middle of the list became another one. Every figure is user plus system time of all processes of a program, less
what the interpreter needs to start; the programs take turns, and the ratio is taken round by round, so that a machine
that slows down does so for all of them. For two processes the wall clock is told too. `--growth` holds the cost of a
line in 4 and 16 copies of a tree, in a long file, in a deep chain of calls and in a dense cluster of them against
that of a smaller one. Nothing is asserted. Trees are copied, never written to.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_READ = "import sys, {module}\nfor name in sys.stdin.read().split('\\0'):\n    try: {parse}(open(name, 'rb').read())\n"
_PARSE = _READ.format(module="ast", parse="ast.parse") + "    except (SyntaxError, ValueError): pass"
_LOSSLESS = _READ.format(module="libcst", parse="libcst.parse_module") + "    except Exception: pass"
_BASE = "ast.parse"
_PERFLINT = [sys.executable, "-m", "perflint", "check", ".", "--output-format", "json", "--exit-zero"]
_RIVALS = (
    ("torchfix", "TorchFix", ["--select", "ALL", "."]),
    ("fixit", "Fixit", ["lint", "."]),
    ("ruff", "ruff", ["check", "--no-cache", "--exit-zero", "."]),
)
#: An installed package has its bytecode at hand, whatever this shell says; no program is measured while it writes it.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
_COPIED = shutil.ignore_patterns(".git", ".perflint_cache", "__pycache__")


class Spent(NamedTuple):
    """Seconds of processor time and of the wall clock."""

    cpu: float
    wall: float


@dataclass
class Program:
    """Something that reads a tree. `before` is done in the tree's copy before each round, outside the measurement."""

    name: str
    command: list[str]
    before: Callable[[], None] = lambda: None
    spent: list[Spent] = field(default_factory=list)


def spend(command: Sequence[str], cwd: Path, text: str = "") -> Spent:
    """What one child process takes, with all processes it starts and waits for."""
    before, start = os.times(), time.perf_counter()
    subprocess.run(command, cwd=cwd, env=_ENVIRONMENT, input=text, text=True, capture_output=True, check=False)
    after, end = os.times(), time.perf_counter()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Spent(cpu, end - start)


def sources(tree: Path) -> list[Path]:
    return sorted(path for path in tree.rglob("*.py") if path.is_file())


def lines_of(files: Sequence[Path]) -> int:
    return sum(file.read_bytes().count(b"\n") for file in files)


# Modes.


class Toggle:
    """Changes what a function in the middle of a tree returns, each time to something else."""

    def __init__(self, tree: Path) -> None:
        self._turn = 0
        files = [file for file in sources(tree) if file.stat().st_size > 2000]
        for file in files[len(files) // 2 :] + files:
            text = file.read_text(encoding="utf-8")
            lines = text.splitlines(keepends=True)
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Return) and isinstance(node.value, ast.Name):
                    if node.end_col_offset == len(lines[node.lineno - 1].rstrip()):
                        self._file, self._line, self._lines = file, node.lineno - 1, lines
                        return
        raise SystemExit(f"{tree}: no file has anything to change")

    def __call__(self) -> None:
        self._turn += 1
        lines = list(self._lines)
        lines[self._line] = f"{lines[self._line].rstrip()} if {self._turn} else None\n"
        self._file.write_text("".join(lines), encoding="utf-8")


def programs(
    tree: Path, modes: Sequence[str], processes: Sequence[int], select: str | None, *, rivals: bool
) -> Iterator[Program]:
    yield Program(_BASE, [sys.executable, "-c", _PARSE])
    change = Toggle(tree) if "changed" in modes else None
    for mode in modes:
        for jobs in processes:
            name = f"perflint, {_WORDS[mode]}, {jobs} process{'es' if jobs > 1 else ''}"
            command = [*_PERFLINT, "--jobs", str(jobs), *(["--no-cache"] if mode == "cold" else [])]
            command += ["--select", select] if select else []
            yield Program(name, command, change if mode == "changed" and change else lambda: None)
    if rivals:
        yield Program("libcst's parser alone", [sys.executable, "-c", _LOSSLESS])
        folder = Path(sys.executable).parent
        for script, name, arguments in _RIVALS:
            found = shutil.which(script, path=f"{folder}{os.pathsep}{os.environ.get('PATH', '')}")
            if found:
                yield Program(name, [found, *arguments])


_WORDS = {"cold": "cold", "warm": "nothing changed", "changed": "one file changed"}


def measure(tree: Path, chosen: Sequence[Program], rounds: int) -> None:
    """Let every program take its turn, `rounds` times."""
    text = "\0".join(map(str, sources(tree)))
    for program in chosen:
        if program.command[:3] == _PERFLINT[:3] and "--no-cache" not in program.command:
            spend(program.command, tree)  # fills the cache
            break
    for _ in range(rounds):
        empty = spend([sys.executable, "-c", "pass"], tree)
        for program in chosen:
            program.before()
            spent = spend(program.command, tree, text if "-c" in program.command else "")
            program.spent.append(Spent(spent.cpu - empty.cpu, spent.wall - empty.wall))


def tell(tree: Path, chosen: Sequence[Program], *, markdown: bool) -> None:
    base = [spent.cpu for spent in chosen[0].spent]
    if markdown:
        print("| program | CPU, s | wall, s | x `ast.parse` |\n|---|---:|---:|---:|")
    for program in chosen:
        cpu = statistics.median(spent.cpu for spent in program.spent)
        wall = statistics.median(spent.wall for spent in program.spent)
        ratio = statistics.median(spent.cpu / each for spent, each in zip(program.spent, base, strict=True))
        if markdown:
            print(f"| {program.name} | {cpu:.2f} | {wall:.2f} | {ratio:.2f} |")
        else:
            print(f"  {program.name:40} {cpu:8.2f} s CPU {wall:8.2f} s wall {ratio:8.2f} x ast.parse")


# Growth.


def grown(tree: Path, folder: Path, copies: int) -> Path:
    """A project that holds a tree `copies` times, each under a name of its own."""
    made = folder / f"x{copies}"
    made.mkdir()
    (made / "pyproject.toml").write_text("[project]\nname = 'copies'\n")
    for number in range(copies):
        shutil.copytree(tree, made / f"copy_{number}", ignore=_COPIED, symlinks=True)
        for package in [path.parent for path in (made / f"copy_{number}").glob("*/__init__.py")]:
            renamed = f"{package.name}_{number}"
            for file in sources(made / f"copy_{number}"):
                text = file.read_bytes()
                for before in (b"from ", b"import "):
                    text = text.replace(before + package.name.encode(), before + renamed.encode())
                file.write_bytes(text)
            package.rename(package.with_name(renamed))
    return made


_LOOP = """
def train_{0}(model_{0}, loader_{0}, optimizer_{0}):
    total_{0} = 0
    for batch in loader_{0}:
        inputs, target = batch["inputs"].cuda(), batch["target"].cuda()
        loss = (model_{0}(inputs) - target).square().mean()
        optimizer_{0}.zero_grad()
        loss.backward()
        optimizer_{0}.step()
        total_{0} += loss.item()
    return total_{0}
"""


def long_file(folder: Path, lines: int) -> Path:
    made = folder / f"lines{lines}"
    made.mkdir()
    count = lines // _LOOP.count("\n")
    (made / "long.py").write_text("import torch\n" + "".join(_LOOP.format(number) for number in range(count)))
    return made


def chain(folder: Path, length: int) -> Path:
    """Each function calls the next one; the first stands in a training loop, the last reads from the device."""
    made = folder / f"chain{length}"
    made.mkdir()
    parts = ["import torch\n\n\ndef train(loader):\n    for batch in torch.utils.data.DataLoader(loader):\n"]
    parts.append("        f0(batch.cuda()).backward()\n")
    parts += [f"\n\ndef f{number}(x):\n    return f{number + 1}(x + 1)\n" for number in range(length)]
    parts.append(f"\n\ndef f{length}(x):\n    return x.sum().item()\n")
    (made / "chain.py").write_text("".join(parts))
    return made


def cluster(folder: Path, size: int) -> Path:
    """Every function calls every other one, in an order of its own."""
    made = folder / f"cluster{size}"
    made.mkdir()
    order = random.Random(0)
    parts = ["import torch\n\n\ndef train(loader):\n    for batch in torch.utils.data.DataLoader(loader):\n"]
    parts.append("        f0(batch.cuda()).backward()\n")
    for number in range(size):
        calls = "".join(f"    x = f{other}(x)\n" for other in order.sample(range(size), size))
        parts.append(f"\n\ndef f{number}(x):\n{calls}    return x.sum().item()\n")
    (made / "cluster.py").write_text("".join(parts))
    return made


def growth(tree: Path, rounds: int, *, markdown: bool) -> None:
    """Cost of a line, against the same cost in the smallest of a kind."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        nothing = folder / "nothing"
        nothing.mkdir()
        (nothing / "nothing.py").write_text("import torch\n")
        kinds = {
            f"copies of {tree.name}": [grown(tree, folder, copies) for copies in (1, 4, 16)],
            "lines of one file": [long_file(folder, lines) for lines in (1250, 5000, 20_000)],
            "functions in one chain": [chain(folder, length) for length in (312, 1250, 5000)],
            "functions that call all": [cluster(folder, size) for size in (75, 150, 300)],
        }
        if markdown:
            print(
                "| what grows | lines | CPU, s | us a line | x smallest | x `ast.parse` |\n"
                "|---|---:|---:|---:|---:|---:|"
            )
        for kind, trees in kinds.items():
            first = 0.0
            for made in trees:
                files = sources(made)
                text, lines = "\0".join(map(str, files)), lines_of(files)
                costs, ratios = [], []
                for _ in range(rounds):
                    empty = spend([*_PERFLINT, "--no-cache", "--jobs", "1"], nothing).cpu
                    base = spend([sys.executable, "-c", _PARSE], made, text).cpu
                    base -= spend([sys.executable, "-c", "import ast"], made).cpu
                    costs.append(spend([*_PERFLINT, "--no-cache", "--jobs", "1"], made).cpu - empty)
                    ratios.append(costs[-1] / max(base, 1e-3))
                cpu, ratio = statistics.median(costs), statistics.median(ratios)
                first = first or cpu / lines
                what = f"{kind}: {made.name}"
                cells = (
                    f"{lines}",
                    f"{cpu:.2f}",
                    f"{cpu / lines * 1e6:.0f}",
                    f"{cpu / lines / first:.2f}",
                    f"{ratio:.1f}",
                )
                print(
                    f"| {what} | {' | '.join(cells)} |" if markdown else f"  {what:40} {'  '.join(cells)}", flush=True
                )


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", type=Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--select", metavar="RULES")
    parser.add_argument("--modes", default="cold", help="some of cold,warm,changed")
    parser.add_argument("--processes", default="1", help="numbers of processes, such as 1,2")
    parser.add_argument("--rivals", action="store_true", help="libcst, and TorchFix, Fixit and ruff where installed")
    parser.add_argument("--growth", action="store_true", help="how the cost of a line grows")
    parser.add_argument("--markdown", action="store_true", help="print tables for a page")
    options = parser.parse_args()
    for tree in map(Path.resolve, options.trees):
        if options.growth:
            growth(tree, options.rounds, markdown=options.markdown)
            continue
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / tree.name
            shutil.copytree(tree, copy, symlinks=True, ignore=_COPIED)
            files = sources(copy)
            processes = [int(number) for number in options.processes.split(",")]
            modes = options.modes.split(",")
            chosen = list(programs(copy, modes, processes, options.select, rivals=options.rivals))
            measure(copy, chosen, options.rounds)
            head = f"{tree.name}: {len(files)} files, {lines_of(files)} lines, {options.rounds} rounds, medians"
            print(f"{head}\n" if options.markdown else head)
            tell(copy, chosen, markdown=options.markdown)
    return 0


def main() -> int:
    with tempfile.TemporaryDirectory() as bytecode:
        _ENVIRONMENT["PYTHONPYCACHEPREFIX"] = bytecode
        spend([sys.executable, "-m", "perflint", "check", __file__, "--no-cache"], Path(__file__).parent)
        return _main()


if __name__ == "__main__":
    sys.exit(main())
