"""An observation for a terminal: the step, what waits by its cost, what is copied, what launches most."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from perflint.finding import amount, percent, with_article
from perflint.observe.model.cost import StepTime
from perflint.observe.model.hardware import hardware
from perflint.observe.report import Options
from perflint.observe.report.launch_bound import launch_bound
from perflint.observe.report.rows import Place, Row, elsewhere, rows, step_of, what_if
from perflint.observe.trace import Observation
from perflint.report.counts import many
from perflint.report.style import Palette, Tint
from perflint.report.visible import display_width, visible

_LONGEST = 70
#: How many functions of libraries are named that wait for one place.
_MOST_INSIDE = 3


def as_text(observation: Observation, options: Options) -> str:
    paint = Palette(options.color)
    listed = rows(observation, options.findings)
    waiting = [row for row in listed if row.waits]
    moved = [row for row in listed if not row.waits and row.kind != "launch"]
    launched = sorted((row for row in listed if row.kind == "launch"), key=lambda row: -row.per_step)
    blocks = [
        "\n".join(_head(observation, paint)),
        _section("waits", waiting, observation, options, paint) or "No synchronization in the steady steps.",
        _section("copies and host allocations that do not synchronize", moved, observation, options, paint),
        _section("launches", launched, observation, options, paint),
        _what_if(observation, options, paint) if options.what_if else "",
        _elsewhere(observation, options, paint),
        "\n".join(f"{paint(Tint.RED, 'note:')} {visible(one)}" for one in observation.errors),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _head(observation: Observation, paint: Palette) -> Iterator[str]:
    on = hardware(observation.hardware)
    device = f"simulated {on.name}" if observation.device == "simulated" else on.name
    steps = "1 steady step" if observation.steps == 1 else f"{observation.steps} steady steps"
    program = f": {visible(' '.join(observation.program))}" if observation.program else ""
    head = f"{steps} after {observation.warmup} of warm-up, {device}, torch {visible(observation.torch)}{program}"
    yield paint(Tint.PLACE, head)
    if observation.ended:
        yield f"The program ended early: {visible(observation.ended)}."
    if not observation.totals:
        return
    step = step_of(observation)
    yield (
        f"a step: {_count(step.waits, 'wait')}, {_count(step.launches, 'kernel launch')}, "
        f"{amount(step.bytes_to_device)} to the device, {amount(step.bytes_to_host)} to the host"
    )
    if step.measured_ms is not None:
        yield f"measured: {step.measured_ms:.3g} ms a step"
    if step.time is not None:
        yield f"modelled on {with_article(on.name)}: {_time(step.time)}"
        if said := launch_bound(step.time, step.launches, observation.errors):
            yield said


def _time(time: StepTime) -> str:
    bound = _BOUND[time.bound_by]
    return (
        f"{time.step_ms:.3g} ms a step, {time.without_waits_ms:.3g} ms without its waits; bound by {bound} "
        f"(host busy {time.host_ms:.3g} ms, device {time.device_ms:.3g} ms, of which copies {time.copies_ms:.3g} ms)"
    )


_BOUND = {"host": "the host", "device": "the device", "copies": "copies"}


def _count(number: float, noun: str) -> str:
    shown = f"{number:.0f}" if number == int(number) else f"{number:.1f}"
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{shown} {noun}{ending}"


def _section(title: str, listed: Sequence[Row], observation: Observation, options: Options, paint: Palette) -> str:
    if not listed:
        return ""
    on = hardware(observation.hardware)
    head = ["how often", f"cost on {with_article(on.name)}", "when", "what", "where"]
    table = [[row.times, cost_of(row), row.rhythm, what_of(row), where_of(row.place)] for row in listed]
    if title == "waits" and options.findings is not None:
        head.insert(-1, "found by")
        for cells, row in zip(table, listed):
            cells.insert(-1, row.finding or "no rule")
    if title == "launches":
        head.pop(1)
        for cells in table:
            cells.pop(1)
    inside = [inside_of(row) if row.waits else "" for row in listed]
    lines = _aligned(head, table[: options.most], options, [row.place for row in listed], paint, inside)
    if len(listed) > options.most:
        lines.append(f"  and {many(len(listed) - options.most, 'more place')}")
    return "\n".join([paint(Tint.LABEL, title), *lines])


def cost_of(row: Row) -> str:
    """`4.1 % (0.21 ms, modelled)`; empty where nothing waits in the kept step."""
    if row.gain_ms is None or row.share is None:
        return ""
    if row.hidden:
        return "none, hidden (modelled)"
    return f"{percent(row.share)} ({row.gain_ms:.2g} ms, modelled)"


def what_of(row: Row) -> str:
    """`read, forward`; `to-device, data, 4.2 MB`."""
    phase = "backward of this line" if row.in_backward else row.phase
    size = f", {amount(row.bytes)}" if row.bytes and row.kind in {"to-host", "to-device", "host-allocation"} else ""
    return f"{row.kind}, {phase}{size}"


def where_of(place: Place) -> str:
    return f"{visible(place[0])}:{place[1]}:{place[2]}"


def inside_of(row: Row) -> str:
    """`in Trainer._run_epoch (trainer.py:1911)`: what of a library waits for the place; empty where it does itself."""
    named = [f"{one.function} ({visible(PurePath(one.path).name)}:{one.line})" for one in row.inside[:_MOST_INSIDE]]
    more = len(row.inside) - len(named)
    return f"in {', '.join(named)}{f' and {more} more' if more else ''}" if named else ""


def source_of(place: Place, options: Options) -> str:
    """The text of the expression, as far as one line has room for it; empty where the file is not there."""
    path, line, column, end_line, end_column = place
    lines = (options.text_of(path) or "").splitlines()
    if line > len(lines):
        return ""
    text = lines[line - 1]
    shown = text[column - 1 : end_column - 1 if end_line == line else len(text)].strip() or text.strip()
    return visible(shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 3]}...")


def _aligned(
    head: Sequence[str],
    table: Sequence[Sequence[str]],
    options: Options,
    places: Sequence[Place],
    paint: Palette,
    inside: Sequence[str] = (),
) -> list[str]:
    widths = [max(display_width(cells[column]) for cells in [head, *table]) for column in range(len(head) - 1)]

    def line(cells: Sequence[str]) -> str:
        padded = [cell + " " * (width - display_width(cell)) for cell, width in zip(cells, widths)]
        return "  " + "  ".join([*padded, cells[-1]]).rstrip()

    lines = [paint(Tint.QUIET, line(head))]
    for cells, place, within in zip(table, places, itertools.chain(inside, itertools.repeat(""))):
        source = source_of(place, options)
        lines.append("  ".join(part for part in (line(cells), source, within) if part))
    return lines


def _what_if(observation: Observation, options: Options, paint: Palette) -> str:
    gained = what_if(observation)
    step = step_of(observation).time
    if not gained or step is None:
        return ""
    head = ["waits", "alone", "with those above", "if it were the last", "where"]
    table = [
        [
            str(one.waits),
            _gain(one.alone_ms, step),
            _gain(one.together_ms, step),
            _gain(one.last_ms, step),
            where_of(one.key),
        ]
        for one in gained
    ]
    title = f"what removing waits gives on {with_article(hardware(observation.hardware).name)} (modelled)"
    lines = _aligned(head, table[: options.most], options, [one.key for one in gained], paint)
    if len(gained) > options.most:
        lines.append(f"  and {many(len(gained) - options.most, 'more place')}")
    return "\n".join([paint(Tint.LABEL, title), *lines])


def _gain(gain_ms: float, step: StepTime) -> str:
    return f"{gain_ms:.2g} ms, {percent(step.share(gain_ms))}" if gain_ms else "nothing"


def _elsewhere(observation: Observation, options: Options, paint: Palette) -> str:
    times = elsewhere(observation, options.hardware)
    if not times:
        return ""
    lines = [f"  {hardware(time.hardware).name:<9} {_time(time)}" for time in times]
    return "\n".join([paint(Tint.LABEL, "the same step on other hardware (modelled)"), *lines])
