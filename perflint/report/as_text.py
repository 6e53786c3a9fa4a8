"""The `text` format: for people at a terminal. Findings in reading order, errors after them, one summary line last."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from perflint.finding import Applicability, Finding, Fix, Problem, Report, Verdict
from perflint.report import excerpt, order, places
from perflint.report.counts import Counts, by_impact, by_part, by_rule, many
from perflint.report.style import OF_IMPACT, Palette, Tint, linked
from perflint.report.visible import display_width, visible, visible_prose

if TYPE_CHECKING:
    from perflint.report import Options

#: So many related places are printed with a finding.
_MOST_RELATED = 8
_LABEL = 13  # columns of "  what to do:"


def render(report: Report, options: Options) -> str:
    paint = Palette(options.color)
    width = max(options.width, 40)
    blocks: list[str] = []
    if options.statistics:
        blocks += counted(report, paint)
    else:
        texts = places.Texts(report.texts)
        for group in order.grouped(report.findings, options.layout.group_by):
            if group.title:
                blocks.append(paint(Tint.PLACE, visible(group.title)))
            blocks += ["\n".join(_finding(one, texts, options, paint, width)) for one in group.findings]
    if report.errors:
        blocks.append("\n".join(problem_line(one, paint) for one in report.errors))
    blocks += ["\n".join(_wrapped(visible_prose(note), width, "", "")) for note in options.notes]
    blocks.append(summary(report, options, paint))
    return "\n\n".join(blocks) + "\n"


def _finding(finding: Finding, texts: places.Texts, options: Options, paint: Palette, width: int) -> Iterator[str]:
    rating = f"[{finding.impact.label} impact, {finding.confidence.label} confidence{_failing(finding, options)}]"
    code = paint(OF_IMPACT[finding.impact], visible(finding.code))
    where = linked(paint(Tint.PLACE, visible(places.place(finding))), finding.path, finding.span.line, options)
    yield f"{where}  {code} {visible(finding.name)} {paint(Tint.QUIET, rating)}"
    yield from _wrapped(visible_prose(finding.message), width, "  ", "  ")
    yield from _source(finding, texts, paint, width)
    if seen := places.observed_line(finding):
        yield from _labelled("observed:", seen, paint, width)
    if why := places.why_hot(finding):
        yield from _labelled("why hot:", visible_prose(why), paint, width)
    if finding.advice:
        yield from _labelled("what to do:", visible_prose(finding.advice), paint, width)
    if finding.fix is not None:
        yield from _labelled("fix:", _fix(finding.fix), paint, width)
    for hop in finding.related[:_MOST_RELATED]:
        yield from _labelled("see also:", visible_prose(f"{places.hop_place(hop)} {hop.text}"), paint, width)
    if (more := len(finding.related) - _MOST_RELATED) > 0:
        yield from _labelled("see also:", f"{many(more, 'more place')}; the format `json` lists all", paint, width)


def _failing(finding: Finding, options: Options) -> str:
    """Marks what makes exit code 1, where not everything that is printed does."""
    return ", fails the check" if options.fails is not None and options.fails(finding) else ""


def _source(finding: Finding, texts: places.Texts, paint: Palette, width: int) -> Iterator[str]:
    gutter = max(len(str(finding.span.end_line)), 4)
    room = max(width - gutter - 5, 20)
    for row in excerpt.rows(texts.lines(finding.path, finding.cell), finding.span, room):
        number = "" if row.line is None else str(row.line)
        yield f"  {paint(Tint.QUIET, f'{number:>{gutter}} |')} {row.text}"
        if row.carets:
            yield f"  {paint(Tint.QUIET, ' ' * gutter + ' |')} {_carets(row.carets, finding, paint)}"


def _carets(carets: str, finding: Finding, paint: Palette) -> str:
    marks = carets.lstrip(" ")
    return " " * (len(carets) - len(marks)) + paint(OF_IMPACT[finding.impact], marks)


def _fix(fix: Fix) -> str:
    """How safe the fix is, why not safer, and how to get it."""
    title = visible_prose(fix.title)
    reason = f": {visible_prose(fix.reason)}" if fix.reason else ""
    numerics = visible_prose(fix.numerics)
    if fix.applicability is Applicability.SAFE:
        return f"{title} (safe{numerics and f', {numerics}'}; apply with `perflint fix`)"
    numerics = numerics and f"; {numerics}"
    if fix.applicability is Applicability.UNSAFE:
        return f"{title} (unsafe{reason}{numerics}; apply with `perflint fix --unsafe`)"
    return f"{title} (by hand{reason}{numerics})"


def _labelled(label: str, text: str, paint: Palette, width: int) -> Iterator[str]:
    head = f"  {label:<{_LABEL - 2}} "
    first, *rest = _wrapped(text, width, head, " " * (_LABEL + 1)) or [head]
    yield f"  {paint(Tint.LABEL, label)}{first[2 + len(label) :]}"
    yield from rest


def _wrapped(text: str, width: int, first: str, then: str) -> list[str]:
    if display_width(text) == len(text):
        return textwrap.wrap(
            text, width, initial_indent=first, subsequent_indent=then, break_long_words=False, break_on_hyphens=False
        )
    return _wrapped_wide(text.split(" "), width, first, then)


def _wrapped_wide(words: list[str], width: int, first: str, then: str) -> list[str]:
    """As `textwrap.wrap`, which counts characters, but by terminal columns."""
    lines, line, empty = [], first, True
    for word in words:
        if not empty and display_width(line) + 1 + display_width(word) > width:
            lines.append(line)
            line, empty = then, True
        line += word if empty else f" {word}"
        empty = False
    return [*lines, line]


def problem_line(problem: Problem, paint: Palette) -> str:
    """An error, on as many lines as its message has."""
    where = visible(places.problem_place(problem))
    message = visible(problem.message) if "\n" not in problem.message else visible_prose(problem.message)
    return f"{paint(Tint.RED, 'error:')} {paint(Tint.PLACE, where) + ': ' if where else ''}{message}"


def summary(report: Report, options: Options, paint: Palette) -> str:
    """One line: how many findings of which impact, what was left out, how long it took, and what to do next."""
    counts = options.counts or Counts.of(report)
    parts: list[str] = []
    if counts.findings:
        where = f"{counts.files_hit} of {many(report.files, 'file')}"
        told = many(len(report.findings), "finding")
        told += f" at {counts.findings} places" if len(report.findings) < counts.findings else ""
        parts.append(f"{told} in {where} ({_split(report)})")
        parts.append(_fixable(counts))
    elif report.files:
        found = "nothing to print" if report.notes else "nothing found"
        parts.append(f"{many(report.files, 'file')} checked, {found}")
    else:
        parts.append("no Python files to check")
    if report.observation is not None:
        parts.append(observed_counts(report))
    parts += [f"left out: {note}" for note in report.notes]
    if report.errors:
        parts.append(many(len(report.errors), "error"))
    if options.seconds is not None:
        parts.append(f"{options.seconds:.1f} s")
    if following := _next(report, counts):
        parts.append(following)
    tint = Tint.RED if report.errors else Tint.PLACE if counts.findings else Tint.GREEN
    return paint(tint, "; ".join(part for part in parts if part) + ".")


def observed_counts(report: Report) -> str:
    """`observed: 3 confirmed, 1 refuted, 2 not reached`."""
    verdicts = [one.observed.verdict for one in report.findings if one.observed is not None]
    counted = [f"{verdicts.count(one)} {one.value}" for one in Verdict if one in verdicts]
    return f"observed: {', '.join(counted)}" if counted else "observed: no data about these findings"


def _split(report: Report) -> str:
    return "; ".join(filter(None, (by_impact(report.findings), by_part(report.findings))))


def _next(report: Report, counts: Counts) -> str:
    """The command that helps most after this report."""
    if not counts.findings or counts.safe or counts.unsafe:
        return ""  # the part about fixes names the command
    return f"`perflint explain {visible(report.findings[0].code)}` explains the rule"


def _fixable(counts: Counts) -> str:
    if counts.safe and counts.unsafe:
        return f"{counts.safe} fixable with `perflint fix`, {counts.unsafe} more with `--unsafe`"
    if counts.safe:
        return f"{counts.safe} fixable with `perflint fix`"
    return f"{counts.unsafe} fixable with `perflint fix --unsafe`" if counts.unsafe else ""


def counted(report: Report, paint: Palette) -> list[str]:
    """Counts per rule, most frequent first."""
    rows = by_rule(report)
    if not rows:
        return []
    wide = max(len(str(row.count)) for row in rows)
    code = max(len(visible(row.code)) for row in rows)
    name = max(len(visible(row.name)) for row in rows)
    lines = [
        f"{row.count:>{wide}}  {paint(OF_IMPACT[row.impact], visible(row.code).ljust(code))}  "
        f"{visible(row.name).ljust(name)}  {paint(Tint.QUIET, f'{row.impacts} impact')}"
        f"{f', fixes: {row.fixes}' if row.fixes else ''}"
        for row in rows
    ]
    return ["\n".join(lines)]
