"""Runs the command line over many inputs, and holds each answer against what every answer owes its user.

    python tests/robustness/large.py tree FOLDER...            every file below, as it is
    python tests/robustness/large.py generated NUMBER          programs of our grammar
    python tests/robustness/large.py hypothesmith NUMBER       programs of Python's grammar; needs hypothesmith
    python tests/robustness/large.py mutated NUMBER FOLDER...  what lies below, with something wrong in it

Options: --seed N, --seconds N (no more is begun after that), --keep FOLDER (for inputs with a wrong answer).
Prints figures, and what is wrong; ends with 1 when anything is. The same answer is asked of a file with other line
ends, a byte order mark and, where it holds none, a character beyond the first plane: the text at each span must not
change.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from answers import Texts, faults
from grammar import programs
from mutants import mutants

from perflint.finding import Confidence, Finding, Heat, Impact, Problem, Report, Span

ROOT = Path(__file__).parent.parent.parent
_BATCH = 200
#: Far more than any batch takes: a run that is not done by then hangs.
_HANGS = 1_800


@dataclass
class Figures:
    files: int = 0
    findings: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def checked(folder: Path, figures: Figures, *, count: bool = True) -> Report | None:
    """What the command line says of a folder, None where it says nothing that can be read."""
    command = [sys.executable, "-m", "perflint", "check", "--extra", "--no-cache", "--output-format", "json", "."]
    began = time.monotonic()
    try:
        done = subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, timeout=_HANGS, check=False)
    except subprocess.TimeoutExpired:
        figures.wrong.append(f"{folder}: not done after {time.monotonic() - began:.0f} s")
        return None
    if done.returncode not in (0, 1, 2) or b"Traceback" in done.stderr or b"internal error" in done.stderr:
        figures.wrong.append(f"{folder}: exit code {done.returncode}: {done.stderr[-2000:].decode(errors='replace')}")
        return None
    try:
        said = json.loads(done.stdout)
    except ValueError as error:
        figures.wrong.append(f"{folder}: what is printed is no JSON ({error}): {done.stderr[-500:]!r}")
        return None
    report = _report(said)
    if (done.returncode == 2) != bool(report.errors):
        figures.wrong.append(f"{folder}: exit code {done.returncode} with {len(report.errors)} errors")
    if count:
        figures.files += report.files
        figures.findings += len(report.findings)
        figures.refused.update(error.message.partition(":")[0] for error in report.errors)
    return report


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}


def _report(said: dict[str, object]) -> Report:
    findings = [
        Finding(
            one["code"],
            one["name"],
            one["path"],
            Span(one["line"], one["column"], one["end_line"], one["end_column"]),
            one["message"],
            Confidence.LOW,
            Impact.LOW,
            Heat.ONCE,
            cell=one.get("cell"),
        )
        for one in said["findings"]  # type: ignore[attr-defined]
    ]
    errors = [Problem(one["path"], one["message"], one["line"]) for one in said["errors"]]  # type: ignore[attr-defined]
    return Report(tuple(findings), tuple(errors), said["files"])  # type: ignore[arg-type]


def judged(folder: Path, figures: Figures, keep: Path | None) -> None:
    report = checked(folder, figures)
    if report is None:
        _kept(folder, None, keep)
        return
    inputs = {}
    for path in {one.path for one in report.findings} | {one.path for one in report.errors}:
        try:
            inputs[path] = (folder / path).read_bytes()
        except (OSError, ValueError):
            continue
    wrong = list(faults(report, inputs))
    figures.wrong += [f"{folder}: {one}" for one in wrong]
    for one in wrong:
        _kept(folder, one.partition(":")[0], keep)
    _varied(report, inputs, figures, keep)


def _kept(folder: Path, path: str | None, keep: Path | None) -> None:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        for file in folder.glob("*.py") if path is None else [folder / path]:
            (keep / f"{folder.name}-{file.name}").write_bytes(file.read_bytes())


def _varied(report: Report, inputs: dict[str, bytes], figures: Figures, keep: Path | None) -> None:
    """Each file with findings once more by itself, as another editor would have saved it."""
    kept = [path for path, data in inputs.items() if path.endswith(".py") and data.isascii() and b"\r" not in data]
    with tempfile.TemporaryDirectory() as name:
        plain, other = Path(name, "plain"), Path(name, "other")
        for folder in (plain, other):
            folder.mkdir()
            (folder / "perflint.toml").write_text("")
        texts: dict[str, tuple[Texts, Texts]] = {}
        for number, path in enumerate(sorted(kept)):
            saved = b"\xef\xbb\xbf" + inputs[path].replace(b"\n", b"\r\n")
            texts[f"f{number}.py"] = Texts(inputs[path]), Texts(saved)
            (plain / f"f{number}.py").write_bytes(inputs[path])
            (other / f"f{number}.py").write_bytes(saved)
        if not texts:
            return
        first, second = checked(plain, figures, count=False), checked(other, figures, count=False)
        if first is None or second is None:
            return
        ours, theirs = _told(first, texts, 0), _told(second, texts, 1)
        for one in sorted(set(ours) ^ set(theirs)):
            figures.wrong.append(f"as another editor saves it: {one}")
            _kept(plain, one[0], keep)


def _told(report: Report, texts: dict[str, tuple[Texts, Texts]], which: int) -> list[tuple[str, int, str, str]]:
    return [
        (one.path, one.span.line, one.code, texts[one.path][which].text(one))
        for one in report.findings
        if texts[one.path][which].tree is not None
    ]


# Inputs


def hypothesmiths(number: int, seed: int) -> Iterator[bytes]:
    import hypothesmith
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded

    left = number
    while left > 0:
        made: list[bytes] = []
        seed += 1

        @seeded(seed)
        @settings(
            max_examples=min(100, left),
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        @given(hypothesmith.from_grammar() | hypothesmith.from_node())
        def collect(text: str) -> None:
            made.append(text.encode("utf-8", "surrogatepass"))  # noqa: B023 - called in this round

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            collect()
        left -= len(made)
        yield from made


def laid_out(made: Iterable[bytes]) -> Iterator[Path]:
    """Folders with as many files each as one run reads."""
    batch: list[bytes] = []
    for data in made:
        batch.append(data)
        if len(batch) == _BATCH:
            yield from _folder(batch)
            batch = []
    yield from _folder(batch)


def _folder(batch: Sequence[bytes]) -> Iterator[Path]:
    if not batch:
        return
    with tempfile.TemporaryDirectory(prefix="perflint-large-") as name:
        (Path(name) / "perflint.toml").write_text("")
        for number, data in enumerate(batch):
            (Path(name) / f"m{number}.py").write_bytes(data)
        yield Path(name)


def _sources(folders: Sequence[str]) -> list[Path]:
    return sorted(file for folder in folders for file in Path(folder).rglob("*.py") if file.is_file())


def _readable(file: Path) -> bool:
    try:
        ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, RecursionError, OSError):
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["tree", "generated", "hypothesmith", "mutated"])
    parser.add_argument("rest", nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3_600)
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    dice, began, figures = random.Random(asked.seed), time.monotonic(), Figures()
    folders: Iterator[Path]
    if asked.kind == "tree":
        folders = iter([Path(one).absolute() for one in asked.rest])
    elif asked.kind == "generated":
        folders = laid_out(programs(dice, int(asked.rest[0])))
    elif asked.kind == "hypothesmith":
        folders = laid_out(hypothesmiths(int(asked.rest[0]), asked.seed))
    else:
        made = mutants([file for file in _sources(asked.rest[1:]) if _readable(file)], dice)
        folders = laid_out(next(made) for _ in range(int(asked.rest[0])))
    for folder in folders:
        judged(folder, figures, asked.keep)
        if time.monotonic() - began > asked.seconds:
            break
    print(f"{asked.kind}: {figures.files} files, {figures.findings} findings, {len(figures.wrong)} wrong answers")
    for message, number in figures.refused.most_common(12):
        print(f"{number:>7}  refused: {message}")
    print(*figures.wrong[:40], sep="\n")
    return bool(figures.wrong)


if __name__ == "__main__":
    sys.exit(main())
