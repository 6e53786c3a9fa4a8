"""The head of the `html` page: findings by impact and rule, files by what they cost, and the hot calls with findings.

Markup only: bars are SVG with attributes, for the page's security policy allows no style in elements.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from perflint.finding import Finding, Hop, Impact
from perflint.report import places
from perflint.report.counts import many
from perflint.report.visible import visible, visible_prose

#: Rows of a plot, and of one level of the tree; the rest is counted.
_MOST = 12
#: Characters of a path that fit one line of the overview.
_LINE = 40
#: What a finding without an observed cost weighs, so that files can be compared.
_WEIGHT = {Impact.HIGH: 9.0, Impact.MEDIUM: 3.0, Impact.LOW: 1.0}


def overview(findings: Sequence[Finding]) -> str:
    """The section, empty without findings."""
    if not findings:
        return ""
    plots = [
        _plot("By impact", "impact", _by_impact(findings)),
        _plot("By rule", "rule", _by_rule(findings)),
        _plot(_files_title(findings), "file", _by_file(findings)),
    ]
    inside = f'<div class="plots">{"".join(plots)}</div>{_tree(findings)}'
    return f'<section class="overview" aria-label="Overview">{inside}</section>'


@dataclass(frozen=True, slots=True)
class _Row:
    """A bar. `value` is what the filter of the plot is set to by a click."""

    value: str
    label: str
    size: float
    said: str
    impact: Impact


def _by_impact(findings: Sequence[Finding]) -> list[_Row]:
    counts = Counter(one.impact for one in findings)
    return [_Row(one.label, one.label, counts[one], str(counts[one]), one) for one in sorted(counts, reverse=True)]


def _by_rule(findings: Sequence[Finding]) -> list[_Row]:
    rules: dict[str, list[Finding]] = {}
    for one in findings:
        rules.setdefault(one.code, []).append(one)
    rows = [
        _Row(code, f"{code} {same[0].name}", len(same), str(len(same)), max(one.impact for one in same))
        for code, same in rules.items()
    ]
    return sorted(rows, key=lambda row: (-row.impact, -row.size, row.value))


def _files_title(findings: Sequence[Finding]) -> str:
    return "Files by observed cost" if any(_share(one) for one in findings) else "Files by findings and impact"


def _by_file(findings: Sequence[Finding]) -> list[_Row]:
    files: dict[str, list[Finding]] = {}
    for one in findings:
        files.setdefault(one.path, []).append(one)
    is_observed = any(_share(one) for one in findings)
    rows = []
    for path, same in files.items():
        size = sum(map(_share, same)) if is_observed else sum(_WEIGHT[one.impact] for one in same)
        said = str(len(same)) + (f", {size:.1%} of a step (modelled)" if is_observed and size else "")
        rows.append(_Row(path, _shortened(path), size, said, max(one.impact for one in same)))
    return sorted(rows, key=lambda row: (-row.size, row.value))


def _shortened(path: str) -> str:
    """The end of a path, which tells files apart, as far as it fits a line of the overview."""
    return path if len(path) <= _LINE else f"\u2026{path[1 - _LINE :]}"


def _share(finding: Finding) -> float:
    return finding.observed.share or 0.0 if finding.observed is not None else 0.0


def _plot(title: str, name: str, rows: Sequence[_Row]) -> str:
    most = max((row.size for row in rows), default=0.0) or 1.0
    bars = "".join(_bar(row, name, row.size / most) for row in rows[:_MOST])
    rest = f'<li class="at">and {many(len(rows) - _MOST, "other")}</li>' if len(rows) > _MOST else ""
    return f'<div class="plot"><h2>{_text(title)}</h2><ul class="rows">{bars}{rest}</ul></div>'


def _bar(row: _Row, name: str, share: float) -> str:
    label = _text(f"{row.label}: {row.said}")
    title = f' title="{_text(row.value)}"' if name == "file" else ""
    return (
        f'<li><a href="#{name}={_query(row.value)}" data-set="{name}" data-value="{_text(row.value)}"{title}>'
        f"{label}</a>"
        f'<svg class="share {row.impact.label}" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect x="0" y="1" width="{max(100 * share, 0.5):.2f}" height="4"/></svg></li>'
    )


@dataclass
class _Node:
    """A place on routes, with what it leads to."""

    below: dict[str, _Node] = field(default_factory=dict)
    findings: list[tuple[int, Finding]] = field(default_factory=list)

    def count(self) -> int:
        return len(self.findings) + sum(one.count() for one in self.below.values())


def _tree(findings: Sequence[Finding]) -> str:
    """The calls from the loops that train to the findings, those with most below them first."""
    root = _Node()
    for position, one in enumerate(findings):
        if not one.route:
            continue
        node = root
        for hop in one.route:
            node = node.below.setdefault(_hop(hop), _Node())
        node.findings.append((position, one))
    if not root.below:
        return ""
    return f'<details class="tree"><summary><b>Hot calls with findings</b></summary>{"".join(_level(root))}</details>'


def _level(node: _Node) -> Iterator[str]:
    yield "<ul>"
    ordered = sorted(node.below.items(), key=lambda item: -item[1].count())
    for name, below in ordered[:_MOST]:
        yield f'<li>{name} <span class="at">{many(below.count(), "finding")}</span>{"".join(_level(below))}</li>'
    if len(ordered) > _MOST:
        yield f'<li class="at">and {many(len(ordered) - _MOST, "other call")}</li>'
    for position, one in node.findings[:_MOST]:
        link = f'<a href="#f{position + 1}">{_text(places.place(one))}</a>'
        yield f'<li>{link} <span class="tag {one.impact.label}">{_text(one.code)} {_text(one.name)}</span></li>'
    if len(node.findings) > _MOST:
        yield f'<li class="at">and {many(len(node.findings) - _MOST, "other finding")}</li>'
    yield "</ul>"


def _hop(hop: Hop) -> str:
    return f'<span class="at">{_text(places.hop_place(hop))}</span> <code>{_text(hop.text)}</code>'


def _text(text: str) -> str:
    return html.escape(visible(visible_prose(text)))


def _query(text: str) -> str:
    from urllib.parse import quote

    return html.escape(quote(text, safe="", errors="backslashreplace"))
