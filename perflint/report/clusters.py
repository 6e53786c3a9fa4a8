"""One defect, one finding: what stands close together and has one cause is printed once, with the other places.

Formats for people print clusters. Formats that tools read keep every finding, so that a line can be looked up.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from perflint.finding import Finding, Hop, Verdict

#: Lines between two findings of one block: more is another block to a reader.
_GAP = 3


def clustered(findings: Sequence[Finding]) -> list[Finding]:
    """`findings` with those of one cluster as the worst of them, the others as related places, in the order given.

    A cluster is findings of one rule in neighbouring lines that run equally often by one route, or findings of two
    rules at one expression. What an observed run says about all of them is the same.
    """
    leads: dict[int, list[Finding]] = {}
    for group in _groups(findings):
        lead = min(group, key=lambda one: (-one.impact, -one.confidence, one.span))
        leads[id(lead)] = [one for one in group if one is not lead]
    return [_with(one, leads[id(one)]) for one in findings if id(one) in leads]


def _groups(findings: Sequence[Finding]) -> list[list[Finding]]:
    groups: list[list[Finding]] = []
    by_place = sorted(findings, key=lambda one: (one.path, one.cell or 0, one.span))
    for one in by_place:
        # Another rule's finding may stand between two of one block.
        home = next((group for group in reversed(groups[-3:]) if _belongs(one, group)), None)
        if home is None:
            groups.append([one])
        else:
            home.append(one)
    return groups


def _belongs(one: Finding, group: list[Finding]) -> bool:
    last = group[-1]
    if (one.path, one.cell, one.heat) != (last.path, last.cell, last.heat):
        return False
    if _verdict(one) is not _verdict(last):
        return False
    # What was seen to happen has figures of its own at each place.
    if one.code != last.code or _verdict(one) is Verdict.CONFIRMED:
        return one.span == last.span
    return one.span.line - last.span.end_line <= _GAP and _cause(one) == _cause(last)


def _verdict(finding: Finding) -> Verdict | None:
    return None if finding.observed is None else finding.observed.verdict


def _cause(finding: Finding) -> object:
    """What findings of one cluster share besides their rule."""
    fix = None if finding.fix is None else (finding.fix.title, finding.fix.applicability)
    return finding.route, finding.impact, fix


def _with(lead: Finding, others: Sequence[Finding]) -> Finding:
    if not others:
        return lead
    same = [one for one in others if one.code == lead.code]
    hops = [Hop(one.path, one.span.line, _said(one, lead), one.cell) for one in others]
    more = f" The same here {len(same)} more {'time' if len(same) == 1 else 'times'}." if same else ""
    known = {(hop.path, hop.line) for hop in hops}
    kept = [hop for hop in lead.related if (hop.path, hop.line) not in known]
    return dataclasses.replace(lead, message=lead.message + more, related=(*kept, *hops))


def _said(one: Finding, lead: Finding) -> str:
    """The expression of a message, which is its first piece of code; for another rule, its name."""
    if one.code != lead.code:
        return f"`{one.code}` {one.name}"
    start = one.message.find("`")
    end = one.message.find("`", start + 1)
    return one.message[start : end + 1] if 0 <= start < end else one.name
