"""How many findings, of which rules, and how many of them perflint can mend itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from perflint.finding import Applicability, Finding, Impact, Report


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
    """One rule's share. `impact` is the highest among its findings."""

    code: str
    name: str
    count: int
    impact: Impact
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
            with_fix(same, Applicability.SAFE),
            with_fix(same, Applicability.UNSAFE),
        )
        for code, same in grouped.items()
    ]
    return sorted(counts, key=lambda one: (-one.count, one.code))


def with_fix(findings: Iterable[Finding], applicability: Applicability) -> int:
    return sum(one.fix is not None and one.fix.applicability is applicability for one in findings)


def many(count: int, noun: str) -> str:
    """`1 file`, `2 files`, `3 fixes`."""
    ending = "" if count == 1 else "es" if noun.endswith("x") else "s"
    return f"{count} {noun}{ending}"
