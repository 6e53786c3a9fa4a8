#!/usr/bin/env python3
"""Write docs/precision.md: how many of perflint's findings in real code were judged by hand, and how many are right.

usage: python tests/judgements/precision.py [--record FOLDER... [--rules TPL603,TPL605]]

The judgements are the *.jsonl files beside this script. `--record` runs perflint over every unpacked tree
`name-version` in the folders (timm-1.0.31 for a release, examples-77f55b91 for a repository at a commit) and notes in
standing.json how much each rule finds there, and which judged findings are gone; with `--rules` only these are looked
at, and what is noted of the others stays. Without it only the page is written anew, from the judgements and that file.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypedDict

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))

from compare import findings  # noqa: E402  the script beside this one

from perflint.rule_api.registry import load_rules  # noqa: E402
from perflint.rule_api.rule import Rule, Tier  # noqa: E402

PAGE = FOLDER.parents[1] / "docs" / "precision.md"
STANDING = FOLDER / "standing.json"
#: By commit of perflint, repositories whose findings were drawn and judged before any rule was held against them.
DRAWS = FOLDER / "draws.json"
#: Strict readings of repositories that stand in no list of this project.
FIRST_LOOKS = FOLDER / "first_looks.json"
#: The packages that every rule is held against; everything else is a training repository.
PACKAGES = (
    "accelerate lightning open-clip-torch speechbrain stable-baselines3 timm torchtune transformers trl ultralytics"
).split()
_SHARE = 0.9
_COMMIT = re.compile(r"[0-9a-f]{8,}")


class _Partly(TypedDict, total=False):
    rules: list[str]


class Noted(_Partly):
    """What a run over one tree gave: how often each rule fires, and the places judged until then where it does, or no
    longer does. `rules` are those that were run, where it was not all."""

    findings: dict[str, int]
    there: list[tuple[str, str, int]]
    gone: list[tuple[str, str, int]]


class Draw(TypedDict, total=False):
    """Findings that were judged in `trees` before anything was mended for them; of `rare` rules only, or of `rules`."""

    perflint: str
    trees: list[str]
    rare: bool
    rules: list[str]


class _Noted(TypedDict, total=False):
    note: str


class FirstLook(_Noted):
    """All findings, or a random draw, in repositories new to this project, judged before anything was changed.

    `high` counts those of high impact (right ones, all), `majors` and `moderates` lines that a reviewer marked before
    seeing a report (found ones, all). `note` says what makes a row another kind of look.
    """

    perflint: str
    repositories: list[str]
    right: int
    negligible: int
    wrong: int
    high: tuple[int, int]
    majors: tuple[int, int]
    moderates: tuple[int, int]


class Judged(NamedTuple):
    tree: str
    path: str
    line: int
    rule: str
    right: bool
    #: Whether it counts for the draw that its tree belongs to, if any: it was not judged later for something else.
    drawn: bool = True

    @property
    def package(self) -> str:
        return self.tree.rpartition("-")[0]


class Tally(NamedTuple):
    """What became of the judged findings of one rule in one group of trees."""

    found: int
    judged: int
    right: int

    @property
    def share(self) -> float | None:
        return self.right / self.judged if self.judged else None


def tree_of(package: str, version: str) -> str:
    """`name-version`, the name as package indexes normalise it, a commit by its first eight digits."""
    name = re.sub(r"[-_.]+", "-", package.rpartition("/")[2]).lower()
    return f"{name}-{version[:8] if _COMMIT.fullmatch(version) else version}"


def judgements() -> list[Judged]:
    found = {}
    for file in sorted(FOLDER.glob("*.jsonl")):
        for text in file.read_text(encoding="utf-8").splitlines():
            item = json.loads(text)
            tree = tree_of(item["package"], item["version"])
            row = Judged(tree, item["path"], item["line"], item["rule"], item["right"], not item.get("later"))
            found[row[:4]] = row
    return sorted(found.values())


def standing() -> dict[str, Noted]:
    return json.loads(STANDING.read_text(encoding="utf-8")) if STANDING.exists() else {}


def record(folders: Iterable[Path], rules: str | None) -> None:
    """Run perflint over the trees that have judgements, and all packages."""
    noted, rows = standing(), judgements()
    only = rules.split(",") if rules else None
    for tree in (item for folder in folders for item in sorted(folder.iterdir()) if item.is_dir()):
        package, _, version = tree.name.rpartition("-")
        name = tree_of(package, version)
        mine = [row for row in rows if row.tree == name and (only is None or row.rule in only)]
        if not mine and name.rpartition("-")[0] not in PACKAGES:
            continue
        places = findings(tree, rules)
        there = {(place.rule, place.path, place.line) for place in places}
        judged = {(row.rule, row.path, row.line) for row in mine}
        noted[name] = merged(noted.get(name), only, Counter(place.rule for place in places), judged, there)
        STANDING.write_text(_lines(noted), encoding="utf-8")
        print(name, len(places), flush=True)


def merged(
    before: Noted | None,
    only: list[str] | None,
    counts: Counter[str],
    judged: set[tuple[str, str, int]],
    there: set[tuple[str, str, int]],
) -> Noted:
    """What is noted of one tree after a run of all rules, or of `only` some: of the others what was noted before."""
    kept = before if only is not None and before is not None else {"findings": {}, "there": [], "gone": []}
    mine = only or []
    noted: Noted = {
        "findings": dict(
            sorted({rule: n for rule, n in kept["findings"].items() if rule not in mine}.items() | counts.items())
        ),
        "there": sorted(
            {(rule, path, line) for rule, path, line in kept["there"] if rule not in mine} | (judged & there)
        ),
        "gone": sorted(
            {(rule, path, line) for rule, path, line in kept["gone"] if rule not in mine} | (judged - there)
        ),
    }
    if only is not None and (before is None or "rules" in before):
        noted["rules"] = sorted({*only, *(before["rules"] if before is not None else [])})
    return noted


def _lines(noted: dict[str, Noted]) -> str:
    """One line for each tree: what changes can be read."""
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(noted[name])}" for name in sorted(noted)) + "\n}\n"


class Record:
    def __init__(self, rows: list[Judged], noted: dict[str, Noted]) -> None:
        self.noted = noted
        self.gone = {(tree, *place) for tree, item in noted.items() for place in item["gone"]}
        self.there = {(tree, *place) for tree, item in noted.items() for place in item["there"]}
        seen = self.there | self.gone
        self.rows = [row for row in rows if (row.tree, row.rule, row.path, row.line) in seen]
        self.elsewhere = [row for row in rows if (row.tree, row.rule, row.path, row.line) not in seen]

    def found(self, rule: str, tree: str) -> int:
        return self.noted[tree]["findings"].get(rule, 0)

    def is_there(self, row: Judged) -> bool:
        return (row.tree, row.rule, row.path, row.line) in self.there

    def tally(self, rule: str, *, packages: bool | None = None) -> Tally:
        """The findings of a rule in packages, in training repositories, or in both."""
        trees = {tree for tree in self.noted if packages in (None, self._is_package(tree))}
        rows = [row for row in self.rows if row.rule == rule and row.tree in trees and self.is_there(row)]
        return Tally(sum(self.found(rule, tree) for tree in trees), len(rows), sum(row.right for row in rows))

    def lost(self, rule: str, *, right: bool) -> int:
        rows = [row for row in self.rows if row.rule == rule and row.right is right]
        return sum(not self.is_there(row) for row in rows)

    def _is_package(self, tree: str) -> bool:
        return tree.rpartition("-")[0] in PACKAGES

    def releases(self) -> list[str]:
        """The tree of each package that counts as its release: with a version, or the one most judged."""
        judged = Counter(row.tree for row in self.rows)
        chosen = []
        for package in PACKAGES:
            trees = [tree for tree in self.noted if tree.rpartition("-")[0] == package]
            if trees:
                chosen.append(max(trees, key=lambda tree: ("." in tree.rpartition("-")[2], judged[tree])))
        return chosen


def markdown(rows: list[Judged], noted: dict[str, Noted]) -> str:
    return "\n".join(_page(Record(rows, noted), load_rules())) + "\n"


def _page(record: Record, rules: tuple[type[Rule], ...]) -> Iterator[str]:
    there = [row for row in record.rows if record.is_there(row)]
    right = sum(row.right for row in there)
    repositories = {row.package for row in record.rows} - set(PACKAGES)
    yield "# How often perflint is right"
    yield ""
    yield "<!-- Written by `python tests/judgements/precision.py`; do not edit. -->"
    yield ""
    yield from _first_looks()
    yield "## All judged findings, after rules were changed for them"
    yield ""
    yield (
        f"{len(record.rows):,} findings in real code were judged by hand: in the {len(PACKAGES)} packages that the "
        f"second table names, and in {len(repositories)} repositories with training code. A finding is right where "
        "who owns the code would agree that the line costs what the message says, there, on a machine with a GPU. "
        "What is true but trifling counts as wrong."
    )
    yield ""
    yield (
        f"{len(there):,} of the judged findings still stand, {right:,} of them right ({_percent(right, len(there))}). "
        "The shares below are of these. A wrong finding that is gone was a reason to mend the rule."
    )
    if record.elsewhere:
        yield ""
        yield f"{len(record.elsewhere)} more were judged where perflint was not run again since; they do not count."
    yield ""
    partly = [tree for tree, item in record.noted.items() if "rules" in item]
    if partly:
        yield f"Of {len(partly)} repositories only the findings of rules that have few were looked for."
        yield ""
    yield from _under(record, rules)
    yield from _drawn(record)
    yield "## By rule"
    yield ""
    yield (
        "| Rule | Tier | Packages: found | judged | right | Training code: found | judged | right "
        "| Right | Wrong, gone | Right, gone |"
    )
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for rule in rules:
        yield _row(record, rule)
    yield ""
    yield "## Findings by rule and package"
    yield ""
    releases = record.releases()
    yield "| Rule | " + " | ".join(tree.replace("-", "&#8209;") for tree in releases) + " |"
    yield "|---|" + "--:|" * len(releases)
    for rule in rules:
        counts = [record.found(rule.code, tree) for tree in releases]
        if any(counts):
            yield f"| {rule.code} | " + " | ".join(str(count or "") for count in counts) + " |"
    yield "| all | " + " | ".join(str(sum(record.found(rule.code, tree) for rule in rules)) for tree in releases) + " |"
    yield ""
    silent = [rule.code for rule in rules if not any(record.found(rule.code, tree) for tree in releases)]
    yield f"Nothing in any of them: {', '.join(silent)}."
    yield ""
    yield "## Measure it again"
    yield ""
    yield "Unpack the source distributions and repositories as `name-version` into folders, then:"
    yield ""
    yield "```"
    yield "python tests/judgements/precision.py --record FOLDER..."
    yield "python tests/judgements/compare.py FOLDER --unjudged"
    yield "```"


def _first_looks() -> Iterator[str]:
    """The headline: what a user meets on code that nobody has tuned for."""
    looks: list[FirstLook] = json.loads(FIRST_LOOKS.read_text(encoding="utf-8"))
    last = looks[-1]
    judged = last["right"] + last["negligible"] + last["wrong"]
    yield (
        f"On {len(last['repositories'])} repositories that stand in no list of this project, a strict reader judged "
        f"{judged} findings of core rules before anything was changed for them: **{last['right']} "
        f"({_percent(last['right'], judged)}) are right and worth a line**, {last['negligible']} are true but "
        f"negligible, {last['wrong']} are wrong (perflint {last['perflint']})."
    )
    yield ""
    yield (
        "| perflint | Repositories | Judged | Right | Negligible | Wrong | Right of high impact | Majors found "
        "| Moderates found |"
    )
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for look in looks:
        judged = look["right"] + look["negligible"] + look["wrong"]
        shares = [f"{part} of {whole}" for part, whole in (look["high"], look["majors"], look["moderates"])]
        counts = [look["negligible"], look["wrong"], *shares]
        yield (
            f"| {look['perflint']} | {len(look['repositories'])} | {judged} "
            f"| {look['right']} ({_percent(look['right'], judged)}) | {' | '.join(map(str, counts))} |"
        )
    yield ""
    yield (
        "Majors and moderates are lines that the reader marked as a profiler would, before seeing a report, in some of "
        "the repositories. tests/judgements/first_looks.json names them. Findings of low impact count like others."
    )
    for look in looks:
        if "note" in look:
            yield f"The row of {look['perflint']} is {look['note']}."
    yield ""


def _drawn(record: Record) -> Iterator[str]:
    """How the rules did where nothing had been mended for: what the shares of the other tables cannot say."""
    draws = json.loads(DRAWS.read_text(encoding="utf-8"))
    yield "## Where nobody had looked"
    yield ""
    yield (
        "Findings of core rules, all or drawn at random, in repositories that no rule had been held against before. "
        "Rules were mended after each draw, so the last column flatters."
    )
    yield ""
    yield from _draws([draw for draw in draws if not draw.get("rare")], record)
    few = [f"{draw['perflint']} ({', '.join(draw['rules'])})" for draw in draws if draw.get("rules")]
    yield f"Of a few rules that fire much alone: {'; '.join(few)}."
    yield ""
    yield "Of rules that fire rarely alone, extra ones among them in the first draw: at most twelve findings of a rule."
    yield ""
    yield from _draws([draw for draw in draws if draw.get("rare")], record)


def _draws(draws: Iterable[Draw], record: Record) -> Iterator[str]:
    yield "| perflint | Repositories | Judged | Right then | Now: still found | right |"
    yield "|---|--:|--:|--:|--:|--:|"
    for draw in draws:
        trees = set(draw["trees"])
        rules = draw.get("rules", ())
        rows = [row for row in record.rows if row.tree in trees and (row.rule in rules if rules else row.drawn)]
        there = [row for row in rows if record.is_there(row)]
        then, now = sum(row.right for row in rows), sum(row.right for row in there)
        cells = [draw["perflint"], len(trees), len(rows), _percent(then, len(rows)), len(there)]
        yield f"| {' | '.join(map(str, cells))} | {_percent(now, len(there))} |"
    yield ""


def _under(record: Record, rules: tuple[type[Rule], ...]) -> Iterator[str]:
    low = []
    for rule in rules:
        tally = record.tally(rule.code)
        if tally.share is not None and tally.share < _SHARE:
            low.append(f"- {rule.code} ({rule.name}, {rule.tier.value}): {tally.right} of {tally.judged}")
    none = [rule.code for rule in rules if not record.tally(rule.code).judged]
    if low:
        yield f"Under {_SHARE:.0%}:"
        yield ""
        yield from low
        yield ""
    if none:
        yield f"No finding in any of these trees to judge: {', '.join(none)}."
        yield ""


def _row(record: Record, rule: type[Rule]) -> str:
    packages, training = record.tally(rule.code, packages=True), record.tally(rule.code, packages=False)
    both = record.tally(rule.code)
    tier = "extra" if rule.tier is Tier.EXTRA else "core"
    cells = [f"{rule.code} {rule.name}", tier]
    for tally in (packages, training):
        cells += [str(tally.found), str(tally.judged), _percent(tally.right, tally.judged)]
    cells.append(_percent(both.right, both.judged))
    cells += [str(record.lost(rule.code, right=False) or ""), str(record.lost(rule.code, right=True) or "")]
    return f"| {' | '.join(cells)} |"


def _percent(part: int, whole: int) -> str:
    """Rounded down: 100 % means all of them."""
    return f"{100 * part // whole} %" if whole else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", nargs="+", type=Path, metavar="FOLDER", default=[])
    parser.add_argument("--rules", metavar="CODES")
    options = parser.parse_args()
    record(options.record, options.rules)
    PAGE.write_text(markdown(judgements(), standing()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
