"""The fixtures under a rewrite: what is told of a program and not of its rewrite, and the other way round."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import rewriting
from perflint import testing
from perflint.api import Rule
from rewriting import ABOUT, COOLING, KEEPING, Change, Rewritten, Told, rewritten, told

FIXTURES = Path(__file__).parents[3] / "fixtures"


class Difference(NamedTuple):
    """What a rewrite changed in what is told of one program; each thing is `CODE path:line`, lines as they were.

    `stays` are findings of high and medium impact that are told as before.
    """

    case: str
    findings: int
    lost: frozenset[str]
    new: frozenset[str]
    stays: frozenset[str]

    def wrong(self, name: str) -> list[str]:
        """What should not be so after the rewrite of this name."""
        if name in COOLING:
            return [f"stays {one}" for one in sorted(self.stays)]
        return [f"lost {one}" for one in sorted(self.lost)] + [f"new {one}" for one in sorted(self.new)]


class _Program(NamedTuple):
    case: str
    texts: dict[str, str]
    rules: list[type[Rule]]
    laid_out: Rewritten
    told: Told


def changes() -> dict[str, Change]:
    """All rewrites of this folder, by name."""
    for each in pkgutil.iter_modules(rewriting.__path__):
        if each.name != "measure":
            importlib.import_module(f"rewriting.{each.name}")
    return {**KEEPING, **COOLING}


def differences(change: Change, part: str = "") -> Iterator[Difference]:
    """Each fixture that a rewrite changes and of which something is told, before or after; `part` of its name."""
    for program in programs():
        if part not in program.case:
            continue
        other = rewritten(program.texts, change)
        if other is None:
            continue
        after = told(other, program.rules)
        lost = program.told.findings - after.findings - after.places
        new = after.findings - program.told.findings - program.told.places
        if program.told.findings or new:
            costly = program.told.findings & after.findings - program.told.low - after.low
            stays = frozenset(key for key in costly if _should_go(key, change, program.rules, other))
            yield Difference(program.case, len(program.told.findings), _said(lost), _said(new), _said(stays))


def _should_go(key: tuple[str, int, str], change: Change, rules: list[type[Rule]], other: Rewritten) -> bool:
    """Whether a rewrite is about a finding: one of its rules, in a line that it marked."""
    about = ABOUT.get(change.__name__)
    if about is not None and not any(rule.code == key[2] and about(rule) for rule in rules):
        return False
    return not other.cooled or key[:2] in other.cooled


@functools.cache
def programs() -> list[_Program]:
    """Every program of the fixtures, with what is told of it."""
    found = []
    for case in testing.find_cases(FIXTURES):
        if case.group[0] == "_":
            continue
        marked = dict(case.read())
        texts, rules = {path: item.text for path, item in marked.items()}, testing.rules_for(case, marked)
        laid_out = rewritten(texts, None)
        assert laid_out is not None
        found.append(_Program(str(case), texts, rules, laid_out, told(laid_out, rules)))
    return found


def _said(found: frozenset[tuple[str, int, str]]) -> frozenset[str]:
    return frozenset(f"{code} {path}:{line}" for path, line, code in found)
