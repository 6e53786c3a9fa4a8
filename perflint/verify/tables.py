"""Results as a table for people and as markdown. Text from outside is made harmless: it may hold anything."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from perflint.verify.results import Machine, Result, Verdict

_COLORS = {
    Verdict.FASTER: "green",
    Verdict.SLOWER: "red",
    Verdict.FEWER: "green",
    Verdict.MORE: "red",
    Verdict.SAME_COUNTS: "",
    Verdict.DIFFERENT_RESULT: "red",
    Verdict.NOT_MEASURABLE: "yellow",
    Verdict.NO_DIFFERENCE: "",
    Verdict.UNDECIDED: "yellow",
    Verdict.NOT_REACHED: "yellow",
}
#: Their reason stands beside them.
_BY_REASON = frozenset({Verdict.NOT_MEASURABLE, Verdict.NOT_REACHED})
_BY_COUNTS = frozenset({Verdict.FEWER, Verdict.MORE, Verdict.SAME_COUNTS})
_FIGURES = frozenset({"before", "after", "ratio", "memory", "first call", "pays after"})
#: Shown only where the first call of a workload was timed by itself.
_STARTUP = ("first call", "pays after")
HEADER = ("rule", "size", "before", "after", "ratio", "interval", "memory", *_STARTUP, "result", "verdict")


def table(machine: Machine, results: Sequence[Result], *, color: bool) -> str:
    """What `perflint verify` prints: the machine, one row a result below its workload, and a line for each thing to
    know about one. Nothing is cut or folded: a table that is wider than the terminal is still a table in a file."""
    import click
    from rich.cells import cell_len

    names, rows = _columns(results)
    widths = [max(map(cell_len, column)) for column in zip(names, *rows)]

    def line(cells: Sequence[str], verdict: Verdict | None = None) -> str:
        padded = []
        for name, cell, width in zip(names, cells, widths):
            space = " " * (width - cell_len(cell))
            padded.append(space + cell if name in _FIGURES else cell + space)
        text = "  ".join(padded).rstrip()
        if not color or verdict is None or not _COLORS[verdict]:
            return text
        last = len(cells[-1])
        return text[:-last] + click.style(cells[-1], fg=_COLORS[verdict])

    lines = [described(machine), "", line(names)]
    shown = ""
    for result, row in zip(results, rows):
        if result.workload != shown:
            shown = result.workload
            lines.append(harmless(shown))
        lines.append(line(row, result.verdict))
    return "".join(f"{text}\n" for text in (*lines, *footnotes(results)))


def markdown(machine: Machine, results: Sequence[Result]) -> str:
    """One table for each workload, below its name."""
    lines = [_escaped(described(machine)), ""]
    for workload, group in groupby(results, key=lambda result: result.workload):
        those = list(group)
        names, rows = _columns(those)
        lines += [
            *([_escaped(harmless(workload)), ""] if workload else []),
            f"| {' | '.join(names)} |",
            "|" + "|".join("---:" if name in _FIGURES else ":---" for name in names) + "|",
            *(f"| {' | '.join(map(_escaped, row))} |" for row in rows),
            "",
        ]
        notes = [f"- {_escaped(line)}" for line in footnotes(those)]
        lines += [*notes, ""] if notes else []
    return "\n".join(lines)


def _columns(results: Sequence[Result]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """The names of the columns that are needed, and the cells of each row."""
    rows = [_cells(result) for result in results]
    if any(result.first_after_s is not None for result in results):
        return HEADER, rows
    keep = [number for number, name in enumerate(HEADER) if name not in _STARTUP]
    return [HEADER[number] for number in keep], [[row[number] for number in keep] for row in rows]


def described(machine: Machine) -> str:
    """`cpu (Some Processor), torch 2.13.0, Python 3.11.7, Linux x86_64`."""
    threads = [] if machine.threads is None else [f"{machine.threads} thread{'s' if machine.threads > 1 else ''}"]
    parts = [
        machine.device,
        f"torch {machine.torch}",
        *machine.versions,
        f"Python {machine.python}",
        machine.system,
        *threads,
    ]
    return ", ".join(harmless(part) for part in parts if part)


def footnotes(results: Sequence[Result]) -> list[str]:
    """One line for what stands in no column."""
    lines = []
    for result in results:
        name = " ".join(part for part in (result.code, result.size) if part)
        if result.reason and result.verdict not in _BY_REASON | _BY_COUNTS:
            lines.append(harmless(f"{name}: {result.reason}"))
        if result.not_compared:
            lines.append(harmless(f"{name}: not compared: {'; '.join(result.not_compared)}"))
        if result.disturbed:
            lines.append(harmless(f"{name}: {result.disturbed} of {result.rounds} comparisons disturbed and left out"))
    return lines


def result_of(result: Result) -> str:
    """Whether the sides gave the same: `equal`, `not compared`; empty where nobody asked, or it is the verdict."""
    if result.equal:
        return "equal"
    return "not compared" if result.equal is None and result.not_compared else ""


def verdict_of(result: Result) -> str:
    """`not measurable here: needs CUDA`."""
    if result.verdict in _BY_COUNTS:
        same = "same result" if result.equal else "results not compared"
        return harmless(f"{result.reason}, {same}")
    is_bare = result.verdict not in _BY_REASON or not result.reason
    return result.verdict.value if is_bare else f"{result.verdict.value}: {harmless(result.reason)}"


def _cells(result: Result) -> Sequence[str]:
    interval = ""
    if result.ratio_low is not None and result.ratio_high is not None:
        interval = f"{_number(result.ratio_low)} to {_number(result.ratio_high)}"
    return (
        harmless(result.code),
        harmless(result.size),
        seconds(result.before_s),
        seconds(result.after_s),
        "" if result.ratio is None else f"{_number(result.ratio)}x",
        interval,
        _memory(result),
        _firsts(result),
        pays_after(result),
        result_of(result),
        verdict_of(result),
    )


def _memory(result: Result) -> str:
    if result.peak_before is None and result.peak_after is None:
        return ""
    return f"{size(result.peak_before)} > {size(result.peak_after)}"


def _firsts(result: Result) -> str:
    if result.first_before_s is None or result.first_after_s is None:
        return ""
    return f"{seconds(result.first_before_s)} > {seconds(result.first_after_s)}"


def pays_after(result: Result) -> str:
    calls = result.pays_after
    if calls is None:
        return ""
    return "never" if math.isinf(calls) else f"{max(math.ceil(calls), 1):,} calls"


def seconds(value: float | None) -> str:
    """A time in the unit that suits it; empty for none."""
    if value is None:
        return ""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if value * factor >= 1:
            return f"{_number(value * factor)} {unit}"
    return f"{_number(value * 1e9)} ns"


def size(value: int | None) -> str:
    """An amount of memory in the unit that suits it."""
    if value is None:
        return "?"
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value >= factor:
            return f"{_number(value / factor)} {unit}"
    return f"{value} B"


def _number(value: float) -> str:
    """Three significant digits without an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def harmless(text: str) -> str:
    """On one line, and nothing in it that a terminal would obey."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" if c not in "\n\r\t" else " " for c in text)


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in "\\`*_[]<>#|~$&!" else c for c in text)
