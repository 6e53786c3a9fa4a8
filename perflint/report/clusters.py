"""One defect, one finding: what has one cause is printed once, with the other places as related ones.

Every format prints the findings of one block once, and what is the same in several branches. Formats for people also
put neighbouring findings of one rule together, and findings of two rules at one expression.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from perflint.finding import Finding, Fix, Hop, Impact, Span, Verdict
from perflint.report.copies import Copies
from perflint.report.counts import many
from perflint.system.patterns import pattern

#: A piece of code in a message.
_CODE = pattern(r"`[^`]*`")
#: Lines between two findings of one block: more is another block to a reader.
_GAP = 3
#: Findings of one cause, the one that is printed first.
Group: TypeAlias = "list[Finding]"


def defects(findings: Sequence[Finding], copies: Copies) -> list[Group]:
    """Findings by defect, in the order of the first ones.

    One defect is what a rule finds in one block (`Finding.block`), in one line, or says in the same words by the same
    route of the same code at several places: in two branches, or at the same call; and what it finds in copies of one
    file. Words that quote no code are the same for any code: six loaders are six defects. Either all of them carry a
    fix of the same kind or none does, and what an observed run says about all of them is the same. So is a loop with
    the read that it names as its cause, which another rule finds, and a wait that costs nothing behind that of another
    rule, or of another file.
    """
    blocks = _blocks(findings)
    groups = _joined(findings, _by([[one] for one in findings], lambda one: blocks.get(id(one), one.block)))
    groups = _joined(findings, _by(groups, lambda one: _words(one) if "`" in one.message else None))
    groups = _joined(findings, _by(groups, lambda one: (one.span.line, one.route, one.heat)))
    groups = _joined(findings, _behind_others(_with_causes(groups)))
    return _joined(findings, _by(groups, copies.in_files([group[0] for group in groups]), anywhere=True))


def neighbours(findings: Sequence[Finding], groups: Sequence[Group], copies: Copies) -> list[Group]:
    """Groups with those joined that a reader takes for one: of one rule in neighbouring lines that run equally often by
    one route, of which one function has several, of two rules at one expression, said in the same words, in copies of
    one function, or of the same code wherever it stands. In the order of `findings`, which are the first ones of the
    groups.
    """
    same = _joined(findings, _by(groups, _words))
    near = _joined(findings, _near(same))
    near = _joined(findings, _by(near, lambda one: _in_one_function(one, copies)))
    copied = _joined(findings, _by(near, copies.in_functions, anywhere=True))
    return _joined(findings, _by(copied, _words_of_code, anywhere=True))


def as_one(group: Group) -> Finding:
    """The first finding of a group, which names the others as related places and counts those of its rule."""
    lead, *others = group
    if not others:
        return lead
    same = [one for one in others if one.code == lead.code and one.path == lead.path]
    behind = [one for one in others if one.behind and one.path != lead.path]
    hops = [Hop(one.path, one.span.line, _said(one, lead), one.cell, one.code) for one in others]
    more = f" {len(same)} more {'occurrence' if len(same) == 1 else 'occurrences'} here." if same else ""
    if behind:
        more += (
            f" {many(len(behind), 'more wait')} behind it in {many(len({one.path for one in behind}), 'other file')}."
        )
    elsewhere = {one.path for one in others if not one.behind} - {lead.path}
    if elsewhere:
        more += f" The same code is in {many(len(elsewhere), 'more file')}."
    known = {(hop.path, hop.line) for hop in hops}
    own = [hop for one in same for hop in one.related if hop.code == one.code]
    kept = [hop for hop in dict.fromkeys((*lead.related, *own)) if (hop.path, hop.line) not in known]
    return dataclasses.replace(lead, message=lead.message + more, related=(*kept, *hops), fix=_fix_of([lead, *same]))


def _blocks(findings: Sequence[Finding]) -> dict[int, Span]:
    """By finding, where the block begins that its own one is a part of: the second wait's block is the first wait's."""
    placed = {(one.code, one.path, one.cell, one.span): one for one in findings}
    found: dict[int, Span] = {}
    for one in findings:
        block, seen = one.block, {one.span}
        while block is not None and block not in seen:
            seen.add(block)
            found[id(one)] = block
            first = placed.get((one.code, one.path, one.cell, block))
            block = None if first is None else first.block
    return found


def _with_causes(groups: Sequence[Group]) -> list[Group]:
    """Groups, with those joined that one of them names as its cause: the loop and the read that it repeats."""
    at: dict[tuple[str, int], list[Group]] = {}
    for group in groups:
        at.setdefault((group[0].path, group[0].span.line), []).append(group)
    pairs: list[tuple[Group, Group]] = []
    paired: set[int] = set()
    for group in groups:
        for hop in group[0].related:
            for other in at.get((hop.path, hop.line), ()) if hop.code == group[0].code else ():
                if paired.isdisjoint((id(other), id(group))) and _is_cause(other[0], group[0]):
                    # The one that is worse stands for both, the loop where they are equal.
                    pairs.append((group, other) if _rank(group[0]) <= _rank(other[0]) else (other, group))
                    paired |= {id(other), id(group)}
    joined = {id(first): [*first, *second] for first, second in pairs}
    return [joined.get(id(group), group) for group in groups if id(group) in joined or id(group) not in paired]


def _behind_others(groups: Sequence[Group]) -> list[list[Group]]:
    """Groups, with those joined whose block begins with what another rule finds, or in another file, and that lose no
    fix by it.
    """
    placed = {(one.path, one.cell, one.span): group for group in groups for one in group}
    at: dict[tuple[str, int | None, int], list[Group]] = {}
    for group in groups:
        for one in group:
            at.setdefault((one.path, one.cell, one.span.line), []).append(group)
    clusters = {id(group): [group] for group in groups}
    homes: dict[int, Group] = {}
    for group in groups:
        lead = group[0]
        own = placed.get((lead.path, lead.cell, lead.block)) if lead.block not in (None, lead.span) else None
        others = [own] if own is not None and own[0].code != lead.code else []
        others += [one for hop in lead.behind for one in at.get((hop.path, hop.cell, hop.line), ())]
        first = min(others, key=lambda one: one[0].code != lead.code, default=None)
        while first is not None and id(first) in homes:
            first = homes[id(first)]
        if first is None or first is group or not _costs_nothing_behind(lead, first[0]):
            continue
        homes[id(group)] = first
        clusters[id(first)] += clusters.pop(id(group))
    return list(clusters.values())


def _costs_nothing_behind(one: Finding, first: Finding) -> bool:
    is_kept = one.fix is None or bool(one.behind)  # a fix of another file is made, and not shown
    return one.impact is Impact.LOW and is_kept and _verdict(one) is _verdict(first) is None


def _is_cause(one: Finding, other: Finding) -> bool:
    """Whether another rule's finding names the place of this one as its own, and runs as often."""
    return (
        one.code != other.code
        and (one.route, one.heat, one.cell) == (other.route, other.heat, other.cell)
        and _verdict(one) is _verdict(other) is not Verdict.CONFIRMED
    )


def _joined(findings: Sequence[Finding], clusters: Iterable[Sequence[Group]]) -> list[Group]:
    """One group of each cluster of groups, its worst finding first, in the order that the findings have."""
    made: dict[int, Group] = {}
    for groups in clusters:
        members = [one for group in groups for one in group]
        lead = groups[0][0] if len(groups) == 1 else min(members, key=_worst_first)
        rest = (one for one in members if one is not lead)
        made[id(lead)] = [lead, *sorted(rest, key=lambda one: (one.path != lead.path, one.path, one.span))]
    return [made[id(one)] for one in findings if id(one) in made]


def _worst_first(one: Finding) -> tuple[int, bool, int, int, str, Span]:
    # Of waits that cost as much, the one that drains the queue stands for those behind it.
    return -one.impact, bool(one.behind), one.part.rank, -one.confidence, one.path, one.span


def _rank(one: Finding) -> tuple[int, int]:
    return -one.impact, -one.confidence


def _by(groups: Sequence[Group], key: Callable[[Finding], object], *, anywhere: bool = False) -> list[list[Group]]:
    """Groups of one rule whose first findings have the same key; each for itself where that is None. They are of one
    file, or `anywhere`.
    """
    clusters: dict[object, list[Group]] = {}
    for group in groups:
        lead = group[0]
        cause = key(lead)
        # What was seen to happen has figures of its own at each place.
        if cause is None or _verdict(lead) is Verdict.CONFIRMED:
            clusters[id(lead)] = [group]
        else:
            place = None if anywhere else (lead.path, lead.cell)
            same = (lead.code, place, _verdict(lead), _kind_of(lead.fix), cause)
            clusters.setdefault(same, []).append(group)
    return list(clusters.values())


def _words(one: Finding) -> object:
    """What is said, however the code that it quotes is spaced."""
    said = "".join((one.message + one.advice).split())
    return (said, one.route, one.heat, one.impact) if one.route else None


def _in_one_function(one: Finding, copies: Copies) -> object:
    """What is said in one function in the same words of other code, with one way there: one thing to change."""
    around = copies.function_around(one)
    said = tuple(_CODE.sub("", text) for text in (one.message, one.advice))
    return None if around is None else (around, said, one.route, one.heat, one.impact)


def _words_of_code(one: Finding) -> object:
    """What is said of the same code wherever it stands and whatever leads there: one decision, taken again in each
    function or program that was copied.
    """
    return (one.message, one.advice, one.heat, one.impact) if "`" in one.message else None


def _near(groups: Sequence[Group]) -> list[list[Group]]:
    clusters: list[list[Group]] = []
    for group in sorted(groups, key=lambda group: (group[0].path, group[0].cell or 0, group[0].span)):
        # Another rule's finding may stand between two of one block.
        home = next((cluster for cluster in reversed(clusters[-3:]) if _belongs(group[0], cluster[-1][-1])), None)
        if home is None:
            clusters.append([group])
        else:
            home.append(group)
    return clusters


def _belongs(one: Finding, last: Finding) -> bool:
    if (one.path, one.cell, one.heat) != (last.path, last.cell, last.heat):
        return False
    if _verdict(one) is not _verdict(last):
        return False
    if one.code != last.code or _verdict(one) is Verdict.CONFIRMED:
        return one.span == last.span
    return one.span.line - last.span.end_line <= _GAP and _cause(one) == _cause(last)


def _verdict(finding: Finding) -> Verdict | None:
    return None if finding.observed is None else finding.observed.verdict


def _cause(finding: Finding) -> object:
    """What findings of one cluster share besides their rule."""
    return finding.route, finding.impact, _kind_of(finding.fix)


def _kind_of(fix: Fix | None) -> object:
    return None if fix is None else (fix.title, fix.applicability)


def _fix_of(same: Sequence[Finding]) -> Fix | None:
    """The fix of all, where they carry one of the same kind: the edits that several make are made once."""
    first = same[0].fix
    if first is None or any(_kind_of(one.fix) != _kind_of(first) for one in same):
        return first
    edits = dict.fromkeys(edit for one in same if one.fix is not None for edit in one.fix.edits)
    return dataclasses.replace(first, edits=tuple(edits))


def _said(one: Finding, lead: Finding) -> str:
    """The expression of a message, which is its first piece of code; for another rule, its name."""
    if one.code != lead.code:
        return f"`{one.code}` {one.name}"
    if one.path != lead.path and not one.behind:
        return "the same code"
    start = one.message.find("`")
    end = one.message.find("`", start + 1)
    return one.message[start : end + 1] if 0 <= start < end else "the same again"
