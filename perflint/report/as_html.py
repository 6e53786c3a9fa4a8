"""The `html` format: one page to look through findings, without network and without trust in what it shows.

Everything from outside is escaped, and a content security policy allows only the page's own script and style, by
hash: even text that slipped through could not run. Without scripts the page still reads; only the filters are gone.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from perflint.finding import Applicability, Finding, Fix, Heat, Hop, Report, Verdict
from perflint.report import patch, places, prose
from perflint.report.counts import Counts, by_impact, many
from perflint.report.html_document import document_start, escaped
from perflint.report.html_overview import overview
from perflint.report.html_page import SCRIPT, STYLE
from perflint.report.measured import plot
from perflint.report.visible import visible_lines
from perflint.rule_api.page import page_of

if TYPE_CHECKING:
    from perflint.report import Options

_CONTEXT = 3
_MOST_LINES = 40
_KEYS = (
    "Keys: <kbd>j</kbd>/<kbd>k</kbd> next and previous finding, <kbd>f</kbd> its fix, <kbd>/</kbd> search, "
    "<kbd>c</kbd> clear the filters."
)
_LONGEST = 400  # characters of a source line on each side of the span


def render(report: Report, options: Options) -> str:
    texts = places.Texts(report.texts)
    ordered = places.in_reading_order(report)
    worst = {id(one): rank for rank, one in enumerate(places.worst_first(ordered))}
    by_place = {id(one): rank for rank, one in enumerate(ordered)}
    cards = [_card(one, by_place[id(one)], texts) for one in sorted(ordered, key=lambda one: worst[id(one)])]
    head = _head(report)
    parts = [
        document_start(
            "perflint report",
            style=STYLE,
            script=SCRIPT,
            more=f'<meta name="generator" content="perflint {escaped(options.version)}">\n',
        ),
        f'<header><h1>perflint</h1><p class="sum">{head}</p></header>',
        *_errors(report),
        overview(ordered),
        options.step_picture,
        _filters(ordered) if ordered else "",
        '<main id="findings">',
        *cards,
        '<p id="none" hidden>No finding matches the filters.</p></main>',
        *_rules(options, {one.code for one in ordered}),
        f"<footer>perflint {escaped(options.version)}. {_KEYS}</footer>",
        f"<script>{SCRIPT}</script></body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _head(report: Report) -> str:
    counts = Counts.of(report)
    files = many(report.files, "file")
    if not counts.findings:
        said = [f"{files} checked, nothing found"]
    else:
        said = [f"<b>{many(counts.findings, 'finding')}</b> ({by_impact(report.findings)})"]
        said += [f"{counts.files_hit} of {files}"]
        said += [f"{counts.safe} safely fixable"] if counts.safe else []
        said += [f"{counts.unsafe} fixable unsafely"] if counts.unsafe else []
    said += [f"left out: {escaped(note)}" for note in report.notes]
    said += [f'<b class="bad">{many(len(report.errors), "error")}</b>'] if report.errors else []
    return " · ".join(said)


def _filters(findings: Sequence[Finding]) -> str:
    rules = Counter((one.code, f"{one.code} {one.name}") for one in findings)
    files = Counter((one.path, one.path) for one in findings)
    fixes = Counter((_fix_label(one), _fix_label(one)) for one in findings)
    seen = Counter((_verdict(one), _verdict(one)) for one in findings)
    impacts = Counter(one.impact for one in findings)
    heats = Counter(one.heat for one in findings)
    confidences = Counter(one.confidence for one in findings)
    return (
        '<form id="filters" role="search" aria-label="Filter findings">'
        '<label>Search <input id="q" type="search" autocomplete="off"></label>'
        + _select("rule", "Rule", sorted(rules.items()))
        + _select("impact", "Impact", [((one.label, one.label), impacts[one]) for one in sorted(impacts, reverse=True)])
        + _select(
            "confidence",
            "Confidence",
            [((one.label, one.label), confidences[one]) for one in sorted(confidences, reverse=True)],
        )
        + _select("heat", "Heat", [((one.label, one.phrase), heats[one]) for one in sorted(heats, reverse=True)])
        + _select("file", "File", sorted(files.items()))
        + _select("fix", "Fix", sorted(fixes.items()))
        + (_select("observed", "Observed", sorted(seen.items())) if set(seen) - {_UNSEEN} else "")
        + '<label>Order <select id="order"><option value="worst">worst first</option>'
        + ('<option value="cost">by observed cost</option>' if set(seen) - {_UNSEEN} else "")
        + '<option value="place">by place</option></select></label>'
        '<button type="reset">Clear</button><output id="shown" aria-live="polite"></output></form>'
    )


def _select(name: str, label: str, choices: Iterable[tuple[tuple[str, str], int]]) -> str:
    options = "".join(
        f'<option value="{escaped(value)}">{escaped(shown)} ({count})</option>' for (value, shown), count in choices
    )
    return f'<label>{label} <select id="{name}"><option value="">all</option>{options}</select></label>'


def _errors(report: Report) -> Iterator[str]:
    if report.errors:
        yield '<section class="errors"><h2>Errors</h2><ul>'
        for problem in report.errors:
            yield f"<li><code>{escaped(places.problem_place(problem))}</code> {_inline(problem.message)}</li>"
        yield "</ul></section>"


def _card(finding: Finding, position: int, texts: places.Texts) -> str:
    data = {
        "rule": finding.code,
        "impact": finding.impact.label,
        "confidence": finding.confidence.label,
        "heat": finding.heat.label,
        "file": finding.path,
        "fix": _fix_label(finding),
        "place": str(position),
        "observed": _verdict(finding),
        "cost": f"{_cost(finding):.9f}",
    }
    attributes = " ".join(f'data-{name}="{escaped(value)}"' for name, value in data.items())
    identity = f"f{position + 1}"
    parts = [
        f'<article id="{identity}" tabindex="-1" aria-labelledby="{identity}h" {attributes}>',
        f'<h2 id="{identity}h"><a href="#{identity}">{escaped(places.place(finding))}</a></h2>',
        _tags(finding),
        f"<p>{_inline(finding.message)}</p>",
        _source(finding, texts),
        f'<p class="observed"><b>Observed:</b> {escaped(seen)}</p>' if (seen := places.observed_line(finding)) else "",
        _route(finding),
        f'<p class="advice"><b>What to do:</b> {_inline(finding.advice)}</p>' if finding.advice else "",
        _related(finding.related),
        _fix(finding, finding.fix, texts) if finding.fix is not None else "",
        "</article>",
    ]
    return "".join(parts)


def _tags(finding: Finding) -> str:
    code, name = escaped(finding.code), escaped(finding.name)
    tags = [
        f'<a class="tag rule" href="#rule-{code}">{code} {name}</a>',
        f'<span class="tag {finding.impact.label}">{finding.impact.label} impact</span>',
        f'<span class="tag">{finding.confidence.label} confidence</span>',
    ]
    if finding.heat is not Heat.ONCE:
        tags.append(f'<span class="tag">{finding.heat.phrase}</span>')
    if finding.observed is not None:
        verdict = finding.observed.verdict
        tags.append(f'<span class="tag {_VERDICTS[verdict]}">{verdict.value}</span>')
    return f'<p class="tags">{"".join(tags)}</p>'


#: Of a finding about which the observation says nothing.
_NO_EVIDENCE = "no evidence"
_UNSEEN = (_NO_EVIDENCE, _NO_EVIDENCE)
_VERDICTS = {Verdict.CONFIRMED: "seen", Verdict.REFUTED: "unseen", Verdict.NOT_REACHED: "unseen"}


def _verdict(finding: Finding) -> str:
    return _NO_EVIDENCE if finding.observed is None else finding.observed.verdict.value


def _cost(finding: Finding) -> float:
    """What to sort by: the part of the step, and below everything what was not confirmed."""
    observed = finding.observed
    return -1.0 if observed is None or observed.verdict is not Verdict.CONFIRMED else observed.share or 0.0


def _source(finding: Finding, texts: places.Texts) -> str:
    lines = texts.lines(finding.path, finding.cell)
    span = finding.span
    if not 1 <= span.line <= len(lines):
        return ""
    last = min(span.end_line, len(lines), span.line + _MOST_LINES)
    # What follows the last newline is no line to a reader.
    count = len(lines) if lines[-1] or last == len(lines) else len(lines) - 1
    shown = range(max(span.line - _CONTEXT, 1), min(last + _CONTEXT, count) + 1)
    rows = "".join(_line(lines[number - 1], number, finding) for number in shown)
    return f'<pre class="source" tabindex="0" aria-label="source">{rows}</pre>'


def _line(line: str, number: int, finding: Finding) -> str:
    span = finding.span
    if not span.line <= number <= span.end_line:
        return f'<span class="n">{number}</span>{_code(line[:_LONGEST])}{"..." if len(line) > _LONGEST else ""}\n'
    start = span.column - 1 if number == span.line else len(line) - len(line.lstrip())
    end = max(span.end_column - 1 if number == span.end_line else len(line), start)
    before, marked, after = line[:start], line[start:end], line[end:]
    cut = "..." if len(before) > _LONGEST else ""
    rest = "..." if len(after) > _LONGEST else ""
    middle = marked if len(marked) <= 2 * _LONGEST else f"{marked[:_LONGEST]} ... {marked[-_LONGEST:]}"
    return (
        f'<span class="n hit">{number}</span>{cut}{_code(before[-_LONGEST:] if cut else before)}'
        f"<mark>{_code(middle)}</mark>{_code(after[:_LONGEST])}{rest}\n"
    )


def _route(finding: Finding) -> str:
    if not finding.route:
        return ""
    steps = "".join(f"<li>{_hop(hop)}</li>" for hop in finding.route)
    return f'<div class="why"><b>Why hot:</b> {finding.heat.phrase}<ol>{steps}</ol></div>'


def _related(related: Sequence[Hop]) -> str:
    if not related:
        return ""
    return '<div class="why"><b>See also:</b><ul>' + "".join(f"<li>{_hop(hop)}</li>" for hop in related) + "</ul></div>"


def _hop(hop: Hop) -> str:
    text = _inline(hop.text) if "`" in hop.text else f"<code>{escaped(hop.text)}</code>"
    return f'<span class="at">{escaped(places.hop_place(hop))}</span> {text}'


def _fix(finding: Finding, fix: Fix, texts: places.Texts) -> str:
    reason = f": {_inline(fix.reason)}" if fix.reason else ""
    head = f"<summary><b>Fix</b> ({_fix_label(finding)}{reason}): {_inline(fix.title)}</summary>"
    rows = [
        f'<span class="{_SIGNS[line.sign]}">{line.sign if line.sign != "@" else ""}{_code(line.text[:2000])}</span>\n'
        for line in _diff(finding, fix, texts)
    ]
    body = f'<pre class="diff" tabindex="0" aria-label="diff">{"".join(rows)}</pre>' if rows else ""
    numerics = f"<p>Numerics: {_inline(fix.numerics)}.</p>" if fix.numerics else ""
    return f'<details class="fix">{head}{numerics}{body}</details>'


def _diff(finding: Finding, fix: Fix, texts: places.Texts) -> Iterator[patch.DiffLine]:
    """In a notebook, a fix may touch several cells; each has lines of its own."""
    for cell in sorted({edit.cell for edit in fix.edits}, key=lambda cell: cell or 0):
        hunks = patch.diff(texts.lines(finding.path, cell), [edit for edit in fix.edits if edit.cell == cell])
        if hunks and cell is not None:
            yield patch.DiffLine("@", f"cell {cell}")
        yield from hunks


_SIGNS = {"@": "hunk", "-": "del", "+": "add", " ": "ctx"}


def _fix_label(finding: Finding) -> str:
    if finding.fix is None:
        return "none"
    return "by hand" if finding.fix.applicability is Applicability.SHOWN else finding.fix.applicability.label


def _rules(options: Options, wanted: set[str]) -> Iterator[str]:
    listed = [rule for rule in sorted(options.rules, key=lambda rule: rule.code) if rule.code in wanted]
    if not listed:
        return
    yield '<section class="rules"><h2>The rules</h2>'
    for rule in listed:
        page = page_of(rule)
        sections = "".join(f"<h3>{escaped(name)}</h3>{_paragraphs(body)}" for name, body in page.sections.items())
        yield (
            f'<details id="rule-{escaped(rule.code)}"><summary><b>{escaped(rule.code)} {escaped(rule.name)}</b> '
            f"{_inline(page.summary)}</summary>{sections}{plot(options.measured.get(rule.code, ()))}</details>"
        )
    yield "</section>"


def _paragraphs(body: str) -> str:
    """Paragraphs, bullet lists (lines that begin with `- `) and indented blocks of code."""
    made = []
    for block in body.split("\n\n"):
        if all(line.startswith("    ") for line in block.splitlines()):
            made.append(f"<pre>{_code(block)}</pre>")
        elif block.startswith("- "):
            items = "".join(f"<li>{_inline(item)}</li>" for item in block[2:].split("\n- "))
            made.append(f"<ul>{items}</ul>")
        else:
            made.append(f"<p>{_inline(block)}</p>")
    return "".join(made)


def _inline(message: str) -> str:
    return "".join(
        f"<code>{html.escape(piece.text)}</code>" if piece.is_code else html.escape(piece.text)
        for piece in prose.pieces(message)
    )


def _code(text: str) -> str:
    return html.escape(visible_lines(text))
