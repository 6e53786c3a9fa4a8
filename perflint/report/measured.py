"""What was measured about a rule, as bars on one logarithmic axis. Plain markup that needs no script and no style."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perflint.report.html_document import escaped

#: The axis reaches at least this far to both sides of "no difference".
_LEAST = 1.25


@dataclass(frozen=True, slots=True)
class Bar:
    """One comparison: `ratio` is the time before over the time after, within `low` and `high`; all more than 0.

    `verdict` is a word or two, `where` the machine, `what` the workload and its size, `figures` the rest in words.
    """

    what: str
    where: str
    verdict: str
    ratio: float
    low: float
    high: float
    figures: str = ""


def plot(bars: Sequence[Bar]) -> str:
    """A list with a bar for each; empty without any."""
    usable = [bar for bar in bars if 0 < bar.low <= bar.ratio <= bar.high < math.inf]
    if not usable:
        return ""
    reach = max(_LEAST, *(max(bar.high, 1 / bar.low) for bar in usable)) * 1.05

    def x(ratio: float) -> float:
        return 50 + 50 * math.log(ratio) / math.log(reach)

    rows = "".join(_row(bar, x(bar.low), x(bar.ratio), x(bar.high)) for bar in usable)
    caption = f"Time before over time after; the middle line is no difference, the edges are {reach:.3g} times."
    return f'<h3>Measured</h3><ul class="bars">{rows}</ul><p class="at">{caption}</p>'


def _row(bar: Bar, low: float, ratio: float, high: float) -> str:
    kind = {"faster": "add", "slower": "del"}.get(bar.verdict, "same")
    said = escaped(f"{bar.what}: {bar.verdict}, {bar.ratio:.3g}x ({bar.low:.3g} to {bar.high:.3g})")
    more = f" {escaped(bar.figures)}" if bar.figures else ""
    # A whisker of no width would not be seen.
    width = max(high - low, 0.6)
    return (
        f'<li>{said}{more}<br><span class="at">{escaped(bar.where)}</span>'
        f'<svg class="bar {kind}" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="{said}">'
        f'<line x1="50" x2="50" y1="0" y2="6"/><rect x="{low:.2f}" y="1" width="{width:.2f}" height="4"/>'
        f'<rect class="mid" x="{ratio - 0.3:.2f}" y="0" width="0.6" height="6"/></svg></li>'
    )
