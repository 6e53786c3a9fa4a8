"""The plot of ratios with their intervals: SVG by hand, which needs nothing, or PNG by matplotlib."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from pathlib import Path

from perflint.errors import PerflintError
from perflint.verify.results import Machine, Result, Verdict
from perflint.verify.tables import described, harmless

_COLORS = {
    Verdict.FASTER: "#1a7f37",
    Verdict.SLOWER: "#cf222e",
    Verdict.NO_DIFFERENCE: "#6e7781",
    Verdict.UNDECIDED: "#9a6700",
}
_LABELS, _CHART, _ROW, _TOP, _BOTTOM = 300, 460, 22, 48, 40
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)


def write_plot(file: Path, machine: Machine, results: Sequence[Result]) -> None:
    """Raises PerflintError when the file cannot be written, or matplotlib is not there for a PNG."""
    suffix = file.suffix.lower()
    measured = [result for result in results if result.ratio is not None]
    try:
        if suffix == ".svg":
            file.write_text(svg(machine, measured), encoding="utf-8")
        elif suffix == ".png":
            _write_png(file, machine, measured)
        else:
            raise PerflintError(f"--plot: {file} must end in .svg or .png")
    except OSError as error:
        raise PerflintError(f"--plot: {file} cannot be written: {error.strerror or error}") from error


def svg(machine: Machine, measured: Sequence[Result]) -> str:
    """One row a result that has a ratio, on a logarithmic axis."""
    low, high = _range(measured)
    height = _TOP + _ROW * max(len(measured), 1) + _BOTTOM

    def x(ratio: float) -> float:
        return _LABELS + _CHART * math.log(ratio / low) / math.log(high / low)

    bottom = height - _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LABELS + _CHART + 40}" height="{height}">',
        "<style>text { font: 12px sans-serif; fill: #24292f }</style>",
        '<rect width="100%" height="100%" fill="white"/>',
        _text(8, 20, described(machine)),
    ]
    for tick in _TICKS:
        if low <= tick <= high:
            color = "#24292f" if tick == 1 else "#d0d7de"
            parts.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{_TOP}" y2="{bottom}" stroke="{color}"/>')
            parts.append(_text(x(tick), bottom + 16, f"{tick:g}x", anchor="middle"))
    parts.append(_text(_LABELS + _CHART / 2, height - 6, "before / after: right of 1 is faster", anchor="middle"))
    for number, result in enumerate(measured):
        y = _TOP + _ROW * number + _ROW / 2
        color = _COLORS.get(result.verdict, "#cf222e")
        ratio, start, end = result.ratio or 1.0, result.ratio_low or 1.0, result.ratio_high or 1.0
        parts += [
            _text(8, y + 4, _label(result)),
            f'<line x1="{x(start):.1f}" x2="{x(end):.1f}" y1="{y}" y2="{y}" stroke="{color}" stroke-width="3"/>',
            f'<circle cx="{x(ratio):.1f}" cy="{y}" r="4" fill="{color}"/>',
        ]
    if not measured:
        parts.append(_text(_LABELS, _TOP + 14, "nothing was measured"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _range(measured: Sequence[Result]) -> tuple[float, float]:
    low = min([result.ratio_low or 1.0 for result in measured], default=1.0)
    high = max([result.ratio_high or 1.0 for result in measured], default=1.0)
    return min(low * 0.9, 0.8), max(high * 1.1, 1.25)


def _label(result: Result) -> str:
    text = harmless(f"{result.code}  {result.size}")
    return text if len(text) <= 44 else f"{text[:41]}..."


def _text(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _write_png(file: Path, machine: Machine, measured: Sequence[Result]) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PerflintError("--plot: a PNG needs matplotlib, which is not installed; an SVG needs nothing") from error
    figure = Figure(figsize=(9, 1.2 + 0.28 * max(len(measured), 1)), layout="constrained")
    axes = figure.add_subplot()
    for number, result in enumerate(measured):
        ratio, low, high = result.ratio or 1.0, result.ratio_low or 1.0, result.ratio_high or 1.0
        axes.errorbar(
            ratio,
            number,
            xerr=[[ratio - low], [high - ratio]],
            fmt="o",
            color=_COLORS.get(result.verdict, "#cf222e"),
        )
    axes.set_yticks(range(len(measured)), [_label(result) for result in measured])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="#24292f", linewidth=1)
    axes.set_xlabel("before / after: right of 1 is faster")
    axes.set_title(described(machine), fontsize=9)
    figure.savefig(file, dpi=120)
