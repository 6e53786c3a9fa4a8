"""The `markdown` format: a comment on a pull request. Counts first, then one folded part a file, the worst first."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from perflint.finding import Applicability, Finding, Fix, Problem, Report
from perflint.report import excerpt, places, prose
from perflint.report.counts import Counts, by_rule, many
from perflint.report.visible import visible
from perflint.system.patterns import pattern

if TYPE_CHECKING:
    from perflint.report import Options

#: GitHub refuses a comment of more than 65,536 characters; a template around it needs some.
MOST_CHARACTERS = 60_000
_SPECIAL = pattern(r"[\\`*_\[\]<>#|~$&!]")
_BREAK = "\u200b"
_SECTION_END = "</details>"


def render(report: Report, options: Options) -> str:
    texts = places.Texts(report.texts)
    parts = [f"### perflint: {_headline(report)}", *_table(report), *_errors(report)]
    room = MOST_CHARACTERS - sum(len(part) + 2 for part in parts)
    left = len(report.findings)
    for findings in _by_file(report):
        section = [_section_start(findings)]
        room -= len(section[0]) + len(_SECTION_END) + 4
        for one in findings:
            described = _finding(one, texts, options)
            if len(described) + 2 > room:
                break
            room -= len(described) + 2
            section.append(described)
        left -= len(section) - 1
        if len(section) > 1:
            parts += [*section, _SECTION_END]
        if len(section) <= len(findings):
            break
    if left:
        parts.append(f"*{many(left, 'more finding')}: too many for one comment.*")
    return "\n\n".join(parts) + "\n"


def _headline(report: Report) -> str:
    counts = Counts.of(report)
    errors = "".join(f"; left out: {text(note)}" for note in report.notes)
    errors += f", {many(len(report.errors), 'error')}" if report.errors else ""
    if not counts.findings:
        return f"nothing found in {many(report.files, 'file')}{errors}"
    return f"{many(counts.findings, 'finding')} in {counts.files_hit} of {many(report.files, 'file')}{errors}"


def _table(report: Report) -> Iterator[str]:
    rows = by_rule(report)
    if not rows:
        return
    head = ("| findings | rule | impact | fixes |", "| ---: | :--- | :--- | :--- |")
    lines = (f"| {row.count} | {text(row.code)} {text(row.name)} | {row.impact.label} | {row.fixes} |" for row in rows)
    yield "\n".join((*head, *lines))


def _errors(report: Report) -> Iterator[str]:
    if report.errors:
        yield "\n".join(f"- **error** {_error(problem)}" for problem in report.errors[:20])
    if len(report.errors) > 20:
        yield f"{len(report.errors) - 20} more errors."


def _error(problem: Problem) -> str:
    where = places.problem_place(problem)
    return f"{code(where)}: {inline(problem.message)}" if where else inline(problem.message)


def _by_file(report: Report) -> list[list[Finding]]:
    """The findings of each file in reading order; the file with the worst finding first."""
    files: dict[str, list[Finding]] = {}
    for one in places.worst_first(places.in_reading_order(report)):
        files.setdefault(one.path, []).append(one)
    return [sorted(same, key=lambda one: (one.cell or 0, one.span)) for same in files.values()]


def _section_start(findings: list[Finding]) -> str:
    path = html.escape(visible(findings[0].path))
    return f"<details><summary><code>{path}</code>: {many(len(findings), 'finding')}</summary>"


def _finding(finding: Finding, texts: places.Texts, options: Options) -> str:
    cell = "" if finding.cell is None else f"cell {finding.cell}, "
    where = f"{cell}{finding.span.line}:{finding.span.column}"
    rating = f"{finding.impact.label} impact, {finding.confidence.label} confidence"
    parts = [
        f"**{where} {text(finding.code)} {text(finding.name)}** ({rating})\\\n{_line_start(inline(finding.message))}"
    ]
    parts += _source(finding, texts, options.width)
    notes = [f"*{label}:* {said}" for label, said in _notes(finding)]
    if notes:
        parts.append("\\\n".join(notes))
    return "\n\n".join(parts)


def _notes(finding: Finding) -> Iterator[tuple[str, str]]:
    if seen := places.observed_line(finding):
        yield "observed", text(seen)
    if why := places.why_hot(finding):
        yield "why hot", inline(why)
    if finding.advice:
        yield "what to do", inline(finding.advice)
    if finding.fix is not None:
        yield "fix", f"{inline(finding.fix.title)} ({_safety(finding.fix)})"
    for hop in finding.related:
        yield "see also", inline(places.hop_text(hop))


def _safety(fix: Fix) -> str:
    label = "by hand" if fix.applicability is Applicability.SHOWN else fix.applicability.label
    return f"{label}: {inline(fix.reason)}" if fix.reason else label


def _source(finding: Finding, texts: places.Texts, width: int) -> Iterator[str]:
    lines: list[str] = []
    for row in excerpt.rows(texts.lines(finding.path, finding.cell), finding.span, max(width, 40)):
        lines += [row.text, row.carets] if row.carets else [row.text]
    if lines:
        # Longer than every run of backticks inside, so that nothing in the source ends the block.
        fence = "`" * (max((len(run) for line in lines for run in re.findall("`+", line)), default=2) + 1)
        fence = max(fence, "```", key=len)
        yield "\n".join([f"{fence}python", *lines, fence])


def inline(message: str) -> str:
    return "".join(code(piece.text) if piece.is_code else text(piece.text) for piece in prose.pieces(message))


def code(source: str) -> str:
    """A code span that ends where it should whatever `source` holds."""
    shown = visible(source)
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def text(words: str) -> str:
    """Plain words: no markup, no link, and nobody gets mentioned."""
    escaped = _SPECIAL.sub(r"\\\g<0>", visible(words))
    # A backslash keeps `#` and `!` from being markup but not from being a reference; "@" has no escape at all.
    escaped = escaped.replace("@", f"@{_BREAK}").replace("\\#", f"\\#{_BREAK}")
    return escaped.replace("://", "&#58;//").replace("www.", "www&#46;")


def _line_start(markup: str) -> str:
    """Escaped where it would begin a list or underline a heading."""
    return re.sub(r"^(\d*)([-+=.)])", r"\1\\\2", markup)
