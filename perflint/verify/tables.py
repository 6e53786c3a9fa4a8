"""Results as a table for people and as markdown. Text from outside is made harmless: it may hold anything."""

from __future__ import annotations

import io
from collections.abc import Sequence

from perflint.verify.results import Machine, Result, Verdict

_COLORS = {
    Verdict.FASTER: "green",
    Verdict.SLOWER: "red",
    Verdict.DIFFERENT_RESULT: "red",
    Verdict.NOT_MEASURABLE: "dim",
    Verdict.NO_DIFFERENCE: "",
}
_FIGURES = frozenset({"before", "after", "ratio", "memory"})
HEADER = ("rule", "workload", "size", "before", "after", "ratio", "interval", "memory", "verdict")


def table(machine: Machine, results: Sequence[Result], *, width: int, color: bool) -> str:
    """What `perflint verify` prints: the machine, one row a result, and a line for each thing to know about one."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    for name in HEADER:
        is_wide = name in {"workload", "size", "verdict"}
        grid.add_column(name, justify="right" if name in _FIGURES else "left", no_wrap=not is_wide, overflow="fold")
    shown = ""
    for result in results:
        cells = list(_cells(result))
        # The workload stands once above its sizes.
        cells[1], shown = ("", shown) if cells[1] == shown else (cells[1], cells[1])
        style = _COLORS[result.verdict]
        grid.add_row(*(Text(cell) for cell in cells[:-1]), Text(cells[-1], style=style))
    out = io.StringIO()
    console = Console(
        file=out,
        width=max(width, 80),
        color_system="standard" if color else None,
        force_terminal=color,
        highlight=False,
    )
    console.print(Text(described(machine)))
    console.print(grid)
    return out.getvalue() + "".join(f"{line}\n" for line in footnotes(results))


def markdown(machine: Machine, results: Sequence[Result]) -> str:
    lines = [
        _escaped(described(machine)),
        "",
        f"| {' | '.join(HEADER)} |",
        "|" + "|".join("---:" if name in _FIGURES else ":---" for name in HEADER) + "|",
        *(f"| {' | '.join(_escaped(cell) for cell in _cells(result))} |" for result in results),
    ]
    notes = [f"- {_escaped(line)}" for line in footnotes(results)]
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


def described(machine: Machine) -> str:
    """`cpu (Some Processor), torch 2.13.0, Python 3.11.7, Linux x86_64`."""
    parts = [machine.device, f"torch {machine.torch}", *machine.versions, f"Python {machine.python}", machine.system]
    return ", ".join(harmless(part) for part in parts if part)


def footnotes(results: Sequence[Result]) -> list[str]:
    """One line for what stands in no column."""
    lines = []
    for result in results:
        name = " ".join(part for part in (result.code, result.size) if part)
        if result.reason and result.verdict is not Verdict.NOT_MEASURABLE:
            lines.append(harmless(f"{name}: {result.reason}"))
        if result.disturbed:
            lines.append(harmless(f"{name}: {result.disturbed} disturbed trials left out (the machine was slower)"))
    return lines


def verdict_of(result: Result) -> str:
    """`not measurable here: needs CUDA`."""
    is_bare = result.verdict is not Verdict.NOT_MEASURABLE or not result.reason
    return result.verdict.value if is_bare else f"{result.verdict.value}: {harmless(result.reason)}"


def _cells(result: Result) -> Sequence[str]:
    interval = ""
    if result.ratio_low is not None and result.ratio_high is not None:
        interval = f"{_number(result.ratio_low)} to {_number(result.ratio_high)}"
    return (
        harmless(result.code),
        harmless(result.workload),
        harmless(result.size),
        seconds(result.before_s),
        seconds(result.after_s),
        "" if result.ratio is None else f"{_number(result.ratio)}x",
        interval,
        _memory(result),
        verdict_of(result),
    )


def _memory(result: Result) -> str:
    if result.peak_before is None and result.peak_after is None:
        return ""
    return f"{size(result.peak_before)} > {size(result.peak_after)}"


def seconds(value: float | None) -> str:
    if value is None:
        return ""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if value * factor >= 1:
            return f"{_number(value * factor)} {unit}"
    return f"{_number(value * 1e9)} ns"


def size(value: int | None) -> str:
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
