"""How many findings, of which rules, and how many of them perflint can mend itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from perflint.finding import Applicability, Finding, Impact, Part, Report


class Counts(NamedTuple):
    """`files_hit` counts files with a finding; `safe` and `unsafe` count findings with such a fix."""

    findings: int
    files_hit: int
    safe: int
    unsafe: int

    @classmethod
    def of(cls, report: Report) -> Counts:
        """Count the findings of a report, and its files with one."""
        findings = report.findings
        return cls(
            len(findings),
            len({one.path for one in findings}),
            with_fix(findings, Applicability.SAFE),
            with_fix(findings, Applicability.UNSAFE),
        )


@dataclass(frozen=True, slots=True)
class RuleCount:
    """One rule's share. `impact` is the highest among its findings, `impacts` says how many have which."""

    code: str
    name: str
    count: int
    impact: Impact
    impacts: str
    safe: int
    unsafe: int

    @property
    def fixes(self) -> str:
        """`2 safe, 1 unsafe`; empty where there are none."""
        counted = ((self.safe, "safe"), (self.unsafe, "unsafe"))
        return ", ".join(f"{count} {label}" for count, label in counted if count)


def by_rule(report: Report) -> list[RuleCount]:
    """Most frequent first, then by code."""
    grouped: dict[str, list[Finding]] = {}
    for one in report.findings:
        grouped.setdefault(one.code, []).append(one)
    counts = [
        RuleCount(
            code,
            same[0].name,
            len(same),
            max(one.impact for one in same),
            by_impact(same),
            with_fix(same, Applicability.SAFE),
            with_fix(same, Applicability.UNSAFE),
        )
        for code, same in grouped.items()
    ]
    return sorted(counts, key=lambda one: (-one.count, one.code))


def by_impact(findings: Iterable[Finding]) -> str:
    """`2 high, 3 medium`."""
    counts = Counter(one.impact for one in findings)
    return ", ".join(f"{counts[level]} {level.label}" for level in sorted(counts, reverse=True))


def by_part(findings: Sequence[Finding]) -> str:
    """`5 in training, 2 in evaluation`; empty where all are in one part of the program."""
    counts = Counter(one.part for one in findings)
    told = [f"{counts[part]} in {part.value}" for part in Part if counts[part]]
    return ", ".join(told) if len(told) > 1 else ""


def with_fix(findings: Iterable[Finding], applicability: Applicability) -> int:
    return sum(one.fix is not None and one.fix.applicability is applicability for one in findings)


def many(count: int, noun: str) -> str:
    """`1 file`, `2 files`, `3 fixes`."""
    ending = "" if count == 1 else "es" if noun.endswith("x") else "s"
    return f"{count} {noun}{ending}"
