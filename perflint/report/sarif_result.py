"""One finding as a SARIF result: message with links, code flow of its route, fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perflint.finding import Applicability, Finding, Fix, Heat, Hop, Verdict
from perflint.report.as_json import observed_object
from perflint.report.places import observed_line
from perflint.report.sarif_tool import LEVELS, Json, Tool, sentence
from perflint.report.visible import visible_lines, visible_prose
from perflint.system.patterns import pattern

if TYPE_CHECKING:
    from perflint.report.sarif_location import Locator


#: More hops than this are of no use to a reader, and code scanning shows at most a thousand.
_MOST_HOPS = 100
_LINK_TEXT = pattern(r"[\[\]\\]")
_ACCIDENTAL_LINK = pattern(r"\[(?=[^\]]*\]\()")


def result_of(finding: Finding, tool: Tool, locator: Locator) -> Json:
    """Everything but the fingerprints, which need all findings."""
    route = _shortened(finding.route)
    related = finding.related[:_MOST_HOPS]
    result: Json = {
        **tool.reference(finding.code),
        "level": LEVELS[finding.impact],
        "rank": rank(finding),
        "message": {"text": _message(finding, route)},
        "locations": [locator.finding(finding)],
    }
    linked = [
        locator.hop(hop, visible_prose(hop.text) or "here", number) for number, hop in enumerate([*route, *related], 1)
    ]
    if linked:
        result["relatedLocations"] = linked
    if route:
        result["codeFlows"] = [_code_flow(finding, route, locator)]
    if finding.fix is not None and finding.fix.applicability is not Applicability.SHOWN and finding.cell is None:
        result["fixes"] = [_fix(finding, finding.fix, locator)]
    result["properties"] = {
        "confidence": finding.confidence.label,
        "impact": finding.impact.label,
        "heat": finding.heat.label,
    }
    if finding.cell is not None:
        result["properties"]["cell"] = finding.cell
    if finding.observed is not None:
        result["properties"]["observed"] = observed_object(finding.observed)
    return result


def rank(finding: Finding) -> float:
    """0 to 100: impact first, then heat, then confidence.

    What an observed run confirmed is at least 60, and more by the part of the step that it costs; what it refuted is 1.
    """
    usual = float(finding.impact * 30 + finding.heat * 6 + finding.confidence * 5)
    if finding.observed is None or finding.observed.verdict is Verdict.NOT_REACHED:
        return usual if finding.observed is None else min(usual, 59.0)
    if finding.observed.verdict is Verdict.REFUTED:
        return 1.0
    return min(60.0 + 40.0 * (finding.observed.share or 0.0), 100.0)


def _shortened(route: tuple[Hop, ...]) -> tuple[Hop, ...]:
    return route if len(route) <= _MOST_HOPS else (*route[: _MOST_HOPS // 2], *route[-_MOST_HOPS // 2 :])


def _message(finding: Finding, route: tuple[Hop, ...]) -> str:
    """The message (its first sentence becomes the alert's title), why it is hot with links to the hops, what to do."""
    parts = [sentence(_unlinked(visible_prose(finding.message)))]
    if route:
        chain = " -> ".join(f"[{_link_text(hop)}]({number})" for number, hop in enumerate(route, 1))
        parts.append(f"It {finding.heat.phrase}: {chain}.")
    elif finding.heat is not Heat.ONCE:
        parts.append(f"It {finding.heat.phrase}.")
    if seen := observed_line(finding):
        parts.append(sentence(f"Observed: {seen}"))
    if finding.related:
        first = len(route) + 1
        places = ", ".join(f"[{_link_text(hop)}]({first + index})" for index, hop in enumerate(finding.related))
        parts.append(f"See also {places}.")
    if finding.cell is not None:
        parts.append(f"In cell {finding.cell}, line {finding.span.line}.")
    if finding.advice:
        parts.append(sentence(_unlinked(visible_prose(finding.advice))))
    return " ".join(parts)


def _unlinked(text: str) -> str:
    """Source such as `losses[i](1)` must not turn into a link."""
    return _ACCIDENTAL_LINK.sub(r"\\[", text)


def _link_text(hop: Hop) -> str:
    return _LINK_TEXT.sub(lambda match: f"\\{match[0]}", visible_prose(hop.text) or f"line {hop.line}")


def _code_flow(finding: Finding, route: tuple[Hop, ...], locator: Locator) -> Json:
    steps = [
        {
            "location": locator.hop(hop, visible_prose(hop.text) or "here"),
            "nestingLevel": level,
            "importance": "essential",
        }
        for level, hop in enumerate(route)
    ]
    here = {**locator.finding(finding), "message": {"text": sentence(_unlinked(visible_prose(finding.message)))}}
    steps.append({"location": here, "nestingLevel": len(route), "importance": "essential"})
    return {
        "message": {"text": f"Why this {finding.heat.phrase}."},
        "threadFlows": [{"locations": steps}],
    }


def _fix(finding: Finding, fix: Fix, locator: Locator) -> Json:
    reason = f"; {visible_prose(fix.reason)}" if fix.reason else ""
    newline = locator.newline(finding.path)
    replacements = [
        {
            "deletedRegion": locator.region(finding.path, edit.span),
            "insertedContent": {"text": visible_lines(edit.text).replace("\n", newline)},
        }
        for edit in sorted(fix.edits, key=lambda edit: edit.span)
    ]
    numerics = f"; {visible_prose(fix.numerics)}" if fix.numerics else ""
    return {
        "description": {"text": f"{visible_prose(fix.title)} ({fix.applicability.label}{reason}{numerics})"},
        "artifactChanges": [{"artifactLocation": locator.artifact(finding.path), "replacements": replacements}],
    }
