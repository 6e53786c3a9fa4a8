"""Compares what `check` says of a corpus with what was seen when its code ran, line by line.

    python tests/accuracy/score.py NAME PACKAGE_FOLDER OBSERVATIONS [--out results/NAME.json] [--missed] [--refuted]

Recall: of the lines that waited, or made a tensor on the host that was then moved, in a steady step, how many carry a
finding on the line or on a project frame of the stack below it. Precision: of the findings whose line ran in a steady
step, how many were seen to happen. Both over all observations of the corpus together, and by rule: a line that was
missed belongs to the rule that would adopt it.
"""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from perflint.finding import Span
from perflint.observe.conditional import conditional_parts, holds, innermost_part

Place = tuple[str, int]
_SPAN = ("line", "column", "end_line", "end_column")


@dataclass
class Seen:
    """What all observations of a corpus saw together. Places are paths from the folder they ran in, and lines."""

    items: int = 0
    ran: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    #: What happened at a place, and the project's frames below it in any of the stacks.
    kinds: dict[Place, set[tuple[str, bool]]] = field(default_factory=lambda: defaultdict(set))
    below: dict[Place, set[Place]] = field(default_factory=lambda: defaultdict(set))
    #: Lines that launched work on the device: no waste by themselves, but what confirms that a line runs every step.
    launched: set[Place] = field(default_factory=set)
    #: Where something happened, launches among it, by path.
    spans: dict[str, set[Span]] = field(default_factory=lambda: defaultdict(set))


def seen_in(files: Iterable[Path], package: str | None) -> Seen:
    """Read observations; only what is in `package`, the first folder of paths, counts, where one is given."""
    seen = Seen()
    for file in files:
        data = json.loads(file.read_text())
        seen.items += 1
        for path, lines in data["ran"].items():
            seen.ran[path].update(_lines(lines))
        for line in data["lines"]:
            if package is not None and not line["path"].startswith(f"{package}/"):
                continue
            place = (line["path"], line["line"])
            if "column" in line:
                seen.spans[line["path"]].add(Span(*(line[key] for key in _SPAN)))
            if line["kind"] == "launch":
                seen.launched.update((line["path"], at) for at in range(line["line"], line["end_line"] + 1))
                continue
            if not (line["waits"] or line["kind"] == "host-allocation"):
                continue
            seen.kinds[place].add((line["kind"], line["waits"]))
            frames = {(frame["path"], frame["line"]) for frame in line["stack"] if not frame.get("library")}
            seen.below[place] |= frames | {(line["path"], at) for at in range(line["line"], line["end_line"] + 1)}
    return seen


def _lines(value: Any) -> Iterator[int]:
    """Numbers, or pairs of a first and a last one."""
    for one in value:
        if isinstance(one, int):
            yield one
        else:
            yield from range(one[0], one[1] + 1)


@dataclass
class Score:
    """Counts of one corpus, by rule."""

    name: str
    version: str
    items: int
    failed: int
    found: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    lines_missed: list[str] = field(default_factory=list)
    findings_wrong: list[str] = field(default_factory=list)


def score(
    name: str,
    version: str,
    seen: Seen,
    findings: list[dict[str, Any]],
    failed: int,
    text_of: Callable[[str], str] = lambda _: "",
) -> Score:
    """Hold findings (the objects of `check --output-format json`) against what was seen. Texts of files tell which
    parts of a line may have been left out while the line ran: findings there count only where something happened."""
    from perflint.rule_api.registry import load_rules

    claims = {rule.code: rule.claims for rule in load_rules() if rule.claims is not None}
    made = Score(name, version, seen.items, failed)
    by_path: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in _places(findings):
        if one["code"] in claims:
            by_path[one["path"]].append(one)

    def claim_it(place: Place, kinds: set[tuple[str, bool]]) -> str | None:
        for one in by_path.get(place[0], ()):
            claim = claims[one["code"]]
            fits = any(kind in claim.kinds and (waits or not claim.waits) for kind, waits in kinds)
            if fits and one["line"] <= place[1] <= one["end_line"]:
                return str(one["code"])
        return None

    for place, kinds in sorted(seen.kinds.items()):
        codes = [code for below in sorted(seen.below[place]) if (code := claim_it(below, kinds))]
        if codes:
            made.found[claim_it(place, kinds) or codes[0]] += 1
            continue
        owner = next((code for kind, _ in sorted(kinds) for code, one in claims.items() if kind in one.adopts), "none")
        made.missed[owner] += 1
        made.lines_missed.append(f"{place[0]}:{place[1]} {', '.join(sorted(kind for kind, _ in kinds))}")
    parts = functools.cache(lambda path: conditional_parts(text_of(path)))
    happened: dict[Place, set[tuple[str, bool]]] = defaultdict(set)
    for place, frames in seen.below.items():
        for frame in frames:
            happened[frame] |= seen.kinds[place]
    for one in (one for same in by_path.values() for one in same):
        lines = range(one["line"], one["end_line"] + 1)
        if not any(line in seen.ran.get(one["path"], ()) for line in lines):
            continue
        if "column" in one and _may_be_left_out(one, parts(one["path"]), seen.spans.get(one["path"], ())):
            continue
        claim = claims[one["code"]]
        kinds = {kind for line in lines for kind in happened.get((one["path"], line), ())}
        if any((one["path"], line) in seen.launched for line in lines):
            kinds.add(("launch", False))
        if any(kind in claim.kinds and (waits or not claim.waits) for kind, waits in kinds):
            made.right[one["code"]] += 1
        else:
            made.wrong[one["code"]] += 1
            made.findings_wrong.append(f"{one['path']}:{one['line']} {one['code']} {one['message'][:100]}")
    return made


def _may_be_left_out(finding: dict[str, Any], parts: tuple[Span, ...], happened: Iterable[Span]) -> bool:
    """As `check --observed` decides it."""
    part = innermost_part(parts, Span(*(finding[key] for key in _SPAN)))
    return part is not None and not any(holds(part, one) for one in happened)


def _places(findings: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each finding, and each other place that it tells of as the same mistake."""
    for one in findings:
        yield one
        for other in one.get("related", ()):
            if other.get("code"):
                yield {"message": one["message"], **other, "end_line": other.get("end_line", other["line"])}


def findings_of(folder: Path) -> list[dict[str, Any]]:
    """What `check` finds in a package folder, named from the folder it lies in."""
    command = [sys.executable, "-m", "perflint", "check", folder.name, "--output-format", "json", "--exit-zero"]
    run = subprocess.run([*command, "--no-cache"], cwd=folder.parent, capture_output=True, text=True, check=False)
    if not run.stdout:
        raise SystemExit(run.stderr)
    found: list[dict[str, Any]] = json.loads(run.stdout)["findings"]
    return found


def together(name: str, scores: Iterable[Score], failed: int) -> Score:
    """The sum of several scores."""
    whole = Score(name, "", 0, failed)
    for one in scores:
        whole.items += one.items
        for mine, other in (
            (whole.found, one.found),
            (whole.missed, one.missed),
            (whole.right, one.right),
            (whole.wrong, one.wrong),
        ):
            mine.update(other)
    return whole


def summary(made: Score) -> str:
    """Two lines for people."""
    found, missed, right, wrong = (sum(one.values()) for one in (made.found, made.missed, made.right, made.wrong))
    return (
        f"{made.name}: {made.items} observed, {made.failed} failed\n"
        f"recall {found} of {found + missed} lines; precision {right} of {right + wrong} findings"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("observations", type=Path)
    parser.add_argument("--version", default="")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--findings", type=Path, help="what `check --output-format json` said, instead of running it")
    parser.add_argument("--known", type=int, help="how many items there are, where not all were tried")
    parser.add_argument("--rules-of", default="", metavar="COMMIT", help="whose rules the findings are of")
    parser.add_argument("--first", action="store_true", help="write this as the first look, before rules were changed")
    parser.add_argument("--missed", action="store_true")
    parser.add_argument("--refuted", action="store_true")
    given = parser.parse_args()
    failed_file = given.observations / "failed.jsonl"
    failed = (
        {json.loads(line)["name"] for line in failed_file.read_text().splitlines()} if failed_file.exists() else set()
    )
    files = sorted(given.observations.glob("*.json"))
    failed -= {file.stem for file in files}
    findings = (
        findings_of(given.folder) if given.findings is None else json.loads(given.findings.read_text())["findings"]
    )

    def text_of(path: str) -> str:
        folder: Path = given.folder.parent
        return (folder / path).read_text(encoding="utf-8", errors="replace")

    made = score(given.name, given.version, seen_in(files, given.folder.name), findings, len(failed), text_of)
    for line in made.lines_missed if given.missed else ():
        print("missed ", line)
    for line in made.findings_wrong if given.refuted else ():
        print("refuted", line)
    print(summary(made))
    if given.out is not None:
        known = {} if given.known is None else {"known": given.known}
        keep(given.out, plain(made) | known | {"rules_of": given.rules_of}, is_first=given.first)


def keep(file: Path, result: dict[str, Any], *, is_first: bool) -> None:
    """Write a result, and leave the other of the first look and the newest one as it is."""
    kept = json.loads(file.read_text()) if file.exists() else {}
    first = {"first": result} if is_first else {"first": kept["first"]} if "first" in kept else {}
    newest = {key: value for key, value in kept.items() if key != "first"} if is_first else result
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps((newest or result) | first, indent=1) + "\n")


def plain(made: Score) -> dict[str, Any]:
    """Without the lines, which are of other people's code at one version."""
    rules = sorted({*made.found, *made.missed, *made.right, *made.wrong})
    return {
        "name": made.name,
        "version": made.version,
        "observed": made.items,
        "failed": made.failed,
        "rules": {
            rule: {
                "found": made.found[rule],
                "missed": made.missed[rule],
                "confirmed": made.right[rule],
                "refuted": made.wrong[rule],
            }
            for rule in rules
        },
    }


if __name__ == "__main__":
    main()
