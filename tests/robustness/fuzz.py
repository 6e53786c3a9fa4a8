"""A coverage-guided fuzzer over all that perflint reads: programs, comments, notebooks, configuration, baselines.

    python tests/robustness/fuzz.py --seconds 60 [--seed N] [--only program] [--corpus FOLDER] [FILE...]

Needs atheris. Ends with 0 when nothing was found, and with 3 where atheris is not installed. With files, each is tried
once and nothing is made up: that is how a crash is looked at again. What is found is left in the corpus's folder.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
LARGEST = 4_000
TARGETS = "program comments notebook configuration baseline globs".split()


class Inputs:
    """What is handed to perflint, each in a folder without anything else."""

    def __init__(self) -> None:
        from answers import faults

        from perflint.engine import Options, check, check_overlay
        from perflint.errors import PerflintError
        from perflint.fixes.rounds import fix_files
        from perflint.project.baseline import Baseline
        from perflint.project.discovery import discover
        from perflint.project.settings import Settings, load_settings
        from perflint.rule_api.registry import load_rules
        from perflint.syntax.read import decode_source
        from perflint.system.globs import spec_of

        self._faults, self._baseline, self._discover, self._error = faults, Baseline, discover, PerflintError
        self._fix, self._spec, self._options, self._check = fix_files, spec_of, Options, check
        self._overlay, self._load, self._decode = check_overlay, load_settings, decode_source
        self._rules = [rule() for rule in load_rules()]
        self._settings = dataclasses.replace(Settings(), time_limit=20.0)

    def one(self, data: bytes) -> None:
        """Raises for whatever should not be. The first byte says what the rest is."""
        target = TARGETS[data[0] % len(TARGETS)] if data else TARGETS[0]
        getattr(self, target)(data[1:])

    def program(self, data: bytes) -> None:
        self._checked("train.py", data)

    def comments(self, data: bytes) -> None:
        words = data.replace(b"\n", b" ").replace(b"\r", b" ")
        loop = b"import gc\nfor batch in loader:\n    loss = model(batch)\n    loss.backward()\n    optimizer.step()\n"
        self._checked("train.py", loop + b"    gc.collect()  # perflint:" + words + b"\n#" + words + b"\n")

    def notebook(self, data: bytes) -> None:
        self._checked("train.ipynb", data)

    def configuration(self, data: bytes) -> None:
        Path("perflint.toml").write_bytes(data)
        try:
            settings = self._load(Path.cwd())
            settings.ignored_in(Path("a/train.py"))
            with contextlib.suppress(self._error):
                from perflint.project.selection import Selection

                Selection(settings).resolve([type(rule) for rule in self._rules])
        except self._error:
            pass
        finally:
            Path("perflint.toml").unlink()

    def baseline(self, data: bytes) -> None:
        Path("baseline.json").write_bytes(data)
        with contextlib.suppress(self._error):
            read = self._baseline.read(Path("baseline.json").absolute())
            read.write()
            assert self._baseline.read(read.file).entries == read.entries, "a baseline is not what was written"

    def globs(self, data: bytes) -> None:
        lines = data.decode("utf-8", "replace").splitlines()
        with contextlib.suppress(ValueError, re.error):  # what its callers expect
            spec = self._spec(lines)
            for name in ("a/b/train.py", "train.py", "a" * 40 + "/" + "a" * 40, "é/\udcff.py"):
                spec.match_file(name)

    def _checked(self, name: str, data: bytes) -> None:
        found = self._discover([], self._settings, stdin=name)
        options = self._options(self._settings, self._rules, stdin=(name, data), cache=False, everything=True)
        report = self._check(found, options)
        wrong = list(self._faults(report, {name: data}))
        assert not wrong, "\n".join(wrong)
        if any(finding.fix for finding in report.findings):
            source = self._decode(data, name)

            def recheck(overlay: Any) -> Any:
                return self._overlay(found, options, overlay)

            fixed = self._fix({name: source}, [source.unplaced(one) for one in report.findings], recheck, bool)
            for file in fixed.files:
                source.encode(file.text)


# What is made up


class Maker:
    """Makes inputs from others: half of them as libFuzzer does, byte by byte, half of them by lines and words."""

    def __init__(self, seeds: list[bytes], anyhow: Callable[[bytes, int], bytes]) -> None:
        self._seeds = seeds
        self._anyhow = anyhow

    def __call__(self, data: bytes, largest: int, seed: int) -> bytes:
        from mutants import mutated

        dice = random.Random(seed)
        if dice.random() < 0.4 or len(data) < 2:
            return bytes(self._anyhow(data, largest))
        head, body = data[:1], data[1:]
        for _ in range(dice.choice((1, 1, 2, 4))):
            body = self._crossed(body, dice) if dice.random() < 0.5 else mutated(body, dice)
        return (head + body)[:largest]

    def _crossed(self, body: bytes, dice: random.Random) -> bytes:
        """Some lines of another input put into this one, in place of others or between them."""
        ours, theirs = body.splitlines(keepends=True), dice.choice(self._seeds)[1:].splitlines(keepends=True)
        start, place = dice.randrange(len(theirs) + 1), dice.randrange(len(ours) + 1)
        taken = theirs[start : start + dice.randint(1, 8)]
        return b"".join([*ours[:place], *taken, *ours[place + dice.choice((0, 0, len(taken))) :]])


def seeds() -> list[bytes]:
    """Programs and notebooks of the fixtures, and small inputs of the other kinds."""
    found = [
        b"\0" + file.read_bytes()
        for file in sorted((ROOT / "fixtures").rglob("*.py"))
        if file.stat().st_size < LARGEST and ".unsafe" not in file.name and ".fixed" not in file.name
    ]
    from grammar import programs

    found += [b"\0" + program for program in programs(random.Random(1), 150) if len(program) < LARGEST]
    comments = b" ignore[TPL303] why", b" ignore-file[TPL3, gc-collect]", b" ignore", b" noqa: TPL303,E501 # x", b"["
    found += [b"\1" + words for words in comments]
    cell = {
        "cell_type": "code",
        "source": ["import gc\n", "%time x = 1\n", "!ls\n", "for b in loader:\n", "    gc.collect()"],
    }
    whole = {
        "cells": [cell, {"cell_type": "markdown", "source": "# x"}, {**cell, "source": "%%bash\nls"}],
        "nbformat": 4,
    }
    found += [b"\2" + json.dumps(whole).encode(), b"\2" + json.dumps(whole, indent=1).encode()]
    found.append(
        b'\3select = ["TPL1", "ALL"]\nextra = true\njobs = 2\nfail-on = "impact=high"\nexclude = ["**/a*"]\n'
        b'target-torch = "2.4"\ncache-dir = "x"\nbaseline = "b"\ntime-limit = 3\n[per-file-ignores]\n"a/*" = ["TPL3"]\n'
    )
    found.append(b'\4{"version": 1, "findings": [{"path": "a.py", "rule": "TPL304", "line": "x", "count": 2}]}')
    found += [b"\5" + words for words in (b"**/a*/b?\n!x\n/a/\n", b"[!a-z]*.py\n\\#x\n# y\n")]
    return found


# The command


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=TARGETS)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("files", nargs="*", type=Path)
    asked = parser.parse_args()
    sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]
    if asked.inside:
        return _fuzz(asked)
    if asked.files:
        return _again([file.absolute() for file in asked.files])
    if importlib.util.find_spec("atheris") is None:
        print("fuzz: atheris is not installed here")
        return 3
    with tempfile.TemporaryDirectory(prefix="perflint-fuzz-") as folder:
        return _watched(asked, asked.corpus.absolute() if asked.corpus else Path(folder))


def _again(files: list[Path]) -> int:
    with _in_an_empty_folder():
        inputs = Inputs()
        for file in files:
            inputs.one(file.read_bytes())
    return 0


@contextlib.contextmanager
def _in_an_empty_folder() -> Iterator[None]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="perflint-empty-") as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def _watched(asked: argparse.Namespace, corpus: Path) -> int:
    """Fuzzes in a process of its own, which libFuzzer ends as it likes, and tells what came of it."""
    found = corpus / "found"
    found.mkdir(parents=True, exist_ok=True)
    with _in_an_empty_folder():
        command = [sys.executable, str(Path(__file__).absolute()), "--inside", "--corpus", str(corpus)]
        command += ["--seconds", str(asked.seconds), "--seed", str(asked.seed)]
        command += ["--only", asked.only] if asked.only else []
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    figures = dict(re.findall(r"stat::(\w+): *(\d+)", done.stderr))
    covered = re.findall(r"cov: (\d+)", done.stderr)
    print(f"fuzz: {figures.get('number_of_executed_units', '?')} inputs, {covered[-1] if covered else '?'} edges")
    crashes = sorted(found.iterdir())
    for crash in crashes:
        print(f"fuzz: {crash}", crash.read_bytes()[:400], sep="\n")
    if done.returncode or crashes or "number_of_executed_units" not in figures:
        print(done.stderr[-6000:])
        return 1
    return 0


def _fuzz(asked: argparse.Namespace) -> int:
    import atheris

    with atheris.instrument_imports(include=["perflint", "rules"]):
        inputs = Inputs()
    chosen = [one for one in seeds() if asked.only is None or TARGETS[one[0]] == asked.only]
    for number, seed in enumerate(chosen):
        (asked.corpus / f"seed-{number:04}").write_bytes(seed)
    # Looked up at each call: `Fuzz` puts another one in its place.
    maker = Maker(chosen, lambda data, largest: atheris.Mutate(data, largest))  # noqa: PLW0108
    known: set[str] = set()

    def one(data: bytes) -> None:
        if asked.only is not None:
            data = bytes([TARGETS.index(asked.only)]) + data[1:]
        try:
            inputs.one(data)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and the search goes on
            kind = _kind(error)
            if kind not in known:
                known.add(kind)
                (asked.corpus / "found" / f"crash-{len(known):03}").write_bytes(data)
                sys.stderr.write(f"found: {kind}\n{traceback.format_exc(limit=-6)}\n")

    options = [
        f"-max_total_time={asked.seconds}",
        f"-seed={asked.seed}",
        f"-max_len={LARGEST}",
        f"-artifact_prefix={asked.corpus}/found/",
        "-timeout=60",
        "-rss_limit_mb=4096",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, str(asked.corpus)], one, custom_mutator=maker)
    atheris.Fuzz()
    return 0


def _kind(error: Exception) -> str:
    """What makes two crashes the same: where they come from, and the words without what was made up."""
    if isinstance(error, AssertionError):
        return re.sub(r"\d+|'[^']*'|\"[^\"]*\"", "_", str(error))[:80]
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {last.filename}:{last.lineno}"


if __name__ == "__main__":
    sys.exit(main())
