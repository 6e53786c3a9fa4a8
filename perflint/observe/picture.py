"""One step as a picture: the clocks of host and device, waits marked. Plain SVG that needs no script and no style."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator

from perflint.finding import with_article
from perflint.observe.model.cost import step_time
from perflint.observe.model.hardware import hardware
from perflint.observe.model.timeline import Segment, Timeline, timeline
from perflint.observe.trace import Observation, Site
from perflint.report.visible import visible

_WIDTH, _LEFT, _ROW = 1000.0, 62.0, 26.0
#: Room above the clocks for the numbers of waits, and beside one for the next.
_ABOVE, _BESIDE = 12.0, 15.0
_ROWS = {"host": 0, "wait": 0, "device": 1, "copy": 1}
#: Waits that are named below the picture.
_MOST_NAMED = 12


def picture(observation: Observation, link: Callable[[Site], str | None] = lambda _site: None) -> str:
    """A heading, the picture and the waits in it, as markup; empty where no step was kept.

    `link` gives the address of what is known about a site, if there is such a thing.
    """
    if observation.step is None or not observation.step.events:
        return ""
    on = hardware(observation.hardware)
    drawn = timeline(observation.step.events, on)
    if not drawn.length_ms:
        return ""
    length_ms = step_time(observation.step.events, on).step_ms
    said = (
        f"One step (number {observation.step.index}) on {with_article(on.name)}: {length_ms:.3g} ms, modelled. "
        "Above the host, below the device."
    )
    return (
        '<section class="step"><h2>One step</h2>'
        f'<p>{html.escape(said)} <span class="key host">host busy</span> <span class="key wait">host waits</span> '
        '<span class="key device">device busy</span> <span class="key copy">copies</span></p>'
        f"{_svg(drawn, said)}{_named(drawn, observation, link)}</section>"
    )


def _svg(drawn: Timeline, said: str) -> str:
    scale = (_WIDTH - _LEFT) / drawn.length_ms
    boxes = "".join(_box(one, scale) for one in drawn.segments)
    marks = "".join(_marks(drawn, scale))
    height = _ABOVE + 2 * _ROW + 26
    return (
        f'<div class="wide"><svg class="clocks" viewBox="0 0 {_WIDTH:.0f} {height:.0f}" role="img" '
        f'aria-label="{html.escape(said)}"><text x="0" y="{_ABOVE + _ROW * 0.65:.1f}">host</text>'
        f'<text x="0" y="{_ABOVE + _ROW * 1.65:.1f}">device</text>'
        f"{boxes}{marks}{_axis(drawn.length_ms, scale, _ABOVE + 2 * _ROW + 4)}</svg></div>"
    )


def _box(segment: Segment, scale: float) -> str:
    start = _LEFT + max(segment.start_ms, 0.0) * scale
    width = max((segment.end_ms - max(segment.start_ms, 0.0)) * scale, 0.4)
    top = _ABOVE + _ROWS[segment.what] * _ROW + 3
    title = f"{_NAMES[segment.what]} from {segment.start_ms:.3f} to {segment.end_ms:.3f} ms"
    return (
        f'<rect class="{segment.what}" x="{start:.2f}" y="{top:.0f}" width="{width:.2f}" height="{_ROW - 6:.0f}">'
        f"<title>{title}</title></rect>"
    )


_NAMES = {"host": "host busy", "wait": "host waits", "device": "device busy", "copy": "copy"}


def _marks(drawn: Timeline, scale: float) -> Iterator[str]:
    """A line through both clocks where a wait joins them, with its number above where there is room for it."""
    free = 0.0
    for number, wait in enumerate(drawn.waits, 1):
        x = _LEFT + wait.end_ms * scale
        yield f'<line class="mark" x1="{x:.2f}" x2="{x:.2f}" y1="{_ABOVE}" y2="{_ABOVE + 2 * _ROW:.0f}"/>'
        if number <= _MOST_NAMED and x >= free:
            yield f'<text class="mark" x="{x:.2f}" y="{_ABOVE - 2:.0f}" text-anchor="middle">{number}</text>'
            free = x + _BESIDE


def _axis(length_ms: float, scale: float, top: float) -> str:
    step = _round(length_ms / 5)
    ticks = [step * index for index in range(int(length_ms / step) + 1)]
    return "".join(
        f'<line class="tick" x1="{_LEFT + at * scale:.2f}" x2="{_LEFT + at * scale:.2f}" y1="{top:.0f}" '
        f'y2="{top + 5:.0f}"/><text x="{_LEFT + at * scale:.2f}" y="{top + 18:.0f}">{at:.4g} ms</text>'
        for at in ticks
        if _LEFT + at * scale < _WIDTH - 30
    )


def _round(value: float) -> float:
    """The next larger 1, 2 or 5 times a power of ten."""
    power = 10.0 ** (len(str(int(1 / value))) * -1 if value < 1 else len(str(int(value))) - 1)
    return next(one * power for one in (1, 2, 5, 10, 20, 50, 100) if one * power >= value)


def _named(drawn: Timeline, observation: Observation, link: Callable[[Site], str | None]) -> str:
    rows = []
    for wait in drawn.waits[:_MOST_NAMED]:
        site = observation.sites[wait.site]
        where = html.escape(visible(f"{site.path}:{site.line}"))
        address = link(site)
        shown = f'<a href="#{html.escape(address)}">{where}</a>' if address else where
        rows.append(f'<li><span class="at">{shown}</span> waits {wait.end_ms - wait.start_ms:.3g} ms</li>')
    more = len(drawn.waits) - len(rows)
    rest = f"<p>{more} more waits are not listed.</p>" if more else ""
    return f"<ol>{''.join(rows)}</ol>{rest}" if rows else "<p>Nothing waits in this step.</p>"
