"""The order of findings, their groups and how many are printed: a `Report` in, what a format prints out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from perflint.finding import Applicability, Finding, Impact, Part, Report
from perflint.report import places
from perflint.report.clusters import Group as Defect
from perflint.report.clusters import as_one, defects, neighbours
from perflint.report.copies import Copies
from perflint.report.counts import Counts, many

#: The default is `impact` for people and `path` for formats that other tools read.
SORTS: tuple[str, ...] = ("impact", "path")
GROUPS: tuple[str, ...] = ("none", "file", "rule", "part")
#: Formats that people read from the top: the worst finding comes first, and findings of low impact are counted only.
FOR_PEOPLE = frozenset({"text", "full", "concise", "grouped", "markdown"})
#: Formats that print as one what a reader takes for one, so that all of them count the same findings.
_JOINING = FOR_PEOPLE | {"html"}


@dataclass(frozen=True, slots=True)
class Layout:
    """What is printed and in which order.

    `sort` is one of `SORTS`, None for the format's own order. `group_by` is one of `GROUPS`. `most` is the largest
    number of findings to print, None for all of them. `impact` is the least impact to print, None for the format's
    own (medium for formats in `FOR_PEOPLE`, low for the others).
    """

    sort: str | None = None
    group_by: str = "none"
    most: int | None = None
    impact: Impact | None = None

    def least_impact(self, output_format: str) -> Impact:
        """The least impact that `output_format` prints."""
        if self.impact is not None:
            return self.impact
        return Impact.MEDIUM if output_format in FOR_PEOPLE else Impact.LOW


#: The part of a step from which on a finding's observed cost outweighs a low impact.
_WORTH_READING = 0.01
#: Every finding, in the format's own order.
EVERYTHING = Layout(impact=Impact.LOW)


class Group(NamedTuple):
    """Findings under one heading; `title` is empty where they are not grouped."""

    title: str
    findings: Sequence[Finding]


def laid_out(report: Report, layout: Layout, output_format: str) -> tuple[Report, Counts]:
    """`report` with the findings to print, in their order, each defect as one, and how many there are place by place.

    Notes count the findings that are not printed.
    """
    least = layout.least_impact(output_format)
    findings = places.in_reading_order(report)
    copies = Copies(report.texts)
    groups = defects(findings, copies)
    kept = [group for group in groups if group[0].impact >= least or any(map(_costs_much, group))]
    kept_ids = set(map(id, kept))
    hidden = [group for group in groups if id(group) not in kept_ids]
    is_joined = output_format in _JOINING
    everything = _joined([*kept, *hidden], copies) if hidden and is_joined else groups
    if _sort(layout, output_format) == "impact":
        kept = _worst_first(kept)
    if is_joined:
        kept = _joined(kept, copies)
    notes = list(report.notes)
    if hidden:
        notes.append(_left_out(hidden, max(1, len(everything) - len(kept)), least))
    if layout.most is not None and len(kept) > layout.most:
        notes.append(f"{many(len(kept) - layout.most, 'more finding')} (`--max-findings`)")
        kept = _first(kept, layout.most)
    every = tuple(one for group in kept for one in group)
    counts = Counts.of(dataclasses.replace(report, findings=every))
    return dataclasses.replace(report, findings=tuple(map(as_one, kept)), notes=tuple(notes)), counts


def _left_out(hidden: list[Defect], more: int, least: Impact) -> str:
    """How many findings more would be printed if none was hidden, and how many of the hidden places have a safe fix."""
    levels = "low" if least is Impact.MEDIUM else "low or medium"
    safe = [one for group in hidden for one in group if one.fix and one.fix.applicability is Applicability.SAFE]
    also = f", {len(safe)} fixable" if safe else ""
    return f"{more} of {levels} impact{also} (`--impact low` prints all)"


def _joined(groups: list[Defect], copies: Copies) -> list[Defect]:
    return neighbours([group[0] for group in groups], groups, copies)


def _costs_much(finding: Finding) -> bool:
    """Whether an observed run showed that a finding is worth reading, whatever its rule's impact."""
    return finding.observed is not None and (finding.observed.share or 0.0) >= _WORTH_READING


def _first(groups: list[Defect], most: int) -> list[Defect]:
    """The worst `most` groups, in the order that they have."""
    kept = {id(group) for group in _worst_first(groups)[:most]}
    return [group for group in groups if id(group) in kept]


def _worst_first(groups: list[Defect]) -> list[Defect]:
    by_lead = {id(group[0]): group for group in groups}
    return [by_lead[id(one)] for one in places.worst_first([group[0] for group in groups])]


def _sort(layout: Layout, output_format: str) -> str:
    return layout.sort or ("impact" if output_format in FOR_PEOPLE else "path")


_TITLES: dict[str, Callable[[Finding], str]] = {
    "file": lambda one: one.path,
    "rule": lambda one: f"{one.code} {one.name}",
    "part": lambda one: one.part.value,
}


def grouped(findings: Iterable[Finding], group_by: str) -> list[Group]:
    """`findings` under headings, each group where its first finding stands, parts of the program in the order of
    `Part`; within a file they are in its order."""
    if group_by == "none":
        return [Group("", list(findings))]
    groups: dict[str, list[Finding]] = {}
    for one in findings:
        groups.setdefault(_TITLES[group_by](one), []).append(one)
    if group_by == "file":
        for same in groups.values():
            same.sort(key=lambda one: (one.cell or 0, one.span, one.code))
    if group_by == "part":
        groups = {part.value: groups[part.value] for part in Part if part.value in groups}
    return [Group(f"{title}: {many(len(same), 'finding')}", same) for title, same in groups.items()]
