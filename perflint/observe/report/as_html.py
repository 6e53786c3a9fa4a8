"""An observation as one page, without network: the step, a picture of its clocks, and a table to sort."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

from perflint import __version__
from perflint.finding import amount, percent, with_article
from perflint.observe.model.hardware import HARDWARE, hardware
from perflint.observe.picture import picture
from perflint.observe.report import Options
from perflint.observe.report.as_text import cost_of, source_of, what_of, where_of
from perflint.observe.report.launch_bound import launch_bound
from perflint.observe.report.rows import Row, elsewhere, place_of, rows, step_of, what_if
from perflint.observe.trace import Observation, Site
from perflint.report.html_document import document_start, escaped
from perflint.report.html_page import STYLE

_TABLE = """
table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{text-align:left;vertical-align:top;border-bottom:1px solid var(--line);padding:.25rem .5rem}
th button{all:unset;cursor:pointer;font-weight:600}
th button:focus-visible{outline:2px solid var(--link)}
tr:target{background:var(--mark)}
td ol{margin:.2rem 0;padding-left:1.4rem}
"""
_STYLE = STYLE + _TABLE
#: Sorts a table by the values in its cells' `data-v`, numbers as numbers; again the other way round.
_SCRIPT = """
(() => {
  "use strict";
  for (const button of document.querySelectorAll("th button")) {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const table = head.closest("table");
      const column = [...head.parentNode.children].indexOf(head);
      const up = head.getAttribute("aria-sort") === "descending";
      for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => row.children[column].dataset.v;
      const order = (one, other) => Number(value(one)) - Number(value(other))
        || value(one).localeCompare(value(other));
      const rows = [...table.tBodies[0].rows].sort(order);
      table.tBodies[0].append(...(up ? rows : rows.reverse()));
    });
  }
})();
"""
_FOOTER = (
    f"<footer>perflint {html.escape(__version__)}. Counts are observed. What is called modelled was computed from "
    "published figures of the hardware, not measured.</footer>"
)


def as_html(observation: Observation, options: Options) -> str:
    listed = rows(observation, options.findings)
    anchors = {row.place: f"l{number}" for number, row in reversed(list(enumerate(listed, 1)))}

    def link(site: Site) -> str | None:
        return anchors.get(place_of(site))

    parts = [
        document_start("perflint observation", style=_STYLE, script=_SCRIPT),
        *_head(observation),
        picture(observation, link),
        _lines(listed, anchors, options),
        _what_if(observation, options),
        _elsewhere(observation),
        _errors(observation),
        _FOOTER,
        f"<script>{_SCRIPT}</script></body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _head(observation: Observation) -> Iterator[str]:
    on = hardware(observation.hardware)
    device = f"simulated {on.name}" if observation.device == "simulated" else on.name
    yield (
        f'<header><h1>perflint observe</h1><p class="sum">{observation.steps} steady steps after '
        f"{observation.warmup} of warm-up · {escaped(device)} · torch {escaped(observation.torch)}</p></header>"
    )
    if observation.program:
        yield f"<pre>{escaped(' '.join(observation.program))}</pre>"
    if observation.ended:
        yield f'<p class="bad">The program ended early: {escaped(observation.ended)}.</p>'
    if not observation.totals:
        return
    step = step_of(observation)
    said = [
        f"<b>{step.waits:.3g}</b> waits",
        f"<b>{step.launches:.4g}</b> kernel launches",
        f"{amount(step.bytes_to_device)} to the device",
        f"{amount(step.bytes_to_host)} to the host",
    ]
    if step.measured_ms is not None:
        said.append(f"{step.measured_ms:.3g} ms measured")
    if step.time is not None:
        said.append(
            f"<b>{step.time.step_ms:.3g} ms</b> modelled on {with_article(on.name)}, "
            f"{step.time.without_waits_ms:.3g} ms without waits, bound by {step.time.bound_by}"
        )
    yield f"<p>A step: {' · '.join(said)}.</p>"
    if step.time is not None and (slow := launch_bound(step.time, step.launches, observation.errors)):
        yield f"<p>{escaped(slow)}</p>"


def _lines(listed: Sequence[Row], anchors: dict[tuple[str, int, int, int, int], str], options: Options) -> str:
    if not listed:
        return "<p>Nothing was recorded.</p>"
    body = []
    named: set[str] = set()
    for row in listed:
        anchor = anchors[row.place]
        identity = "" if anchor in named else f' id="{anchor}"'
        named.add(anchor)
        body.append(
            f"<tr{identity}>"
            + _cell(cost_of(row), row.share or 0.0)
            + _cell("yes" if row.waits else "", int(row.waits))
            + _cell(row.times, row.per_step)
            + _cell(row.rhythm, row.rhythm)
            + _cell(what_of(row), row.kind)
            + (_cell(row.finding, row.finding) if options.findings is not None else "")
            + _cell(amount(row.bytes) if row.bytes else "", row.bytes)
            + _where(row, options)
            + "</tr>"
        )
    found = ("Found by",) if options.findings is not None else ()
    heads = ("Cost (modelled)", "Waits", "How often", "When", "What", *found, "Bytes a step", "Where")
    return f"<section><h2>Lines</h2>{_table(heads, body)}</section>"


def _table(heads: Sequence[str], body: Sequence[str]) -> str:
    shown = "".join(f'<th scope="col"><button type="button">{head}</button></th>' for head in heads)
    rows = "".join(body)
    return f'<div class="wide"><table><thead><tr>{shown}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cell(shown: str, value: float | str) -> str:
    return f'<td data-v="{escaped(str(value))}">{escaped(shown)}</td>'


def _where(row: Row, options: Options) -> str:
    source = source_of(row.place, options)
    code = f" <code>{html.escape(source)}</code>" if source else ""
    frames = "".join(
        f'<li><span class="at">{escaped(f"{frame.path}:{frame.line}")}</span> {escaped(frame.function)}</li>'
        for frame in row.site.stack
    )
    operations = escaped(", ".join(row.operations))
    stack = f"<details><summary>{operations or 'stack'}</summary><ol>{frames}</ol></details>" if frames else operations
    where = where_of(row.place)
    return f'<td data-v="{html.escape(where)}"><span class="at">{html.escape(where)}</span>{code}{stack}</td>'


def _what_if(observation: Observation, options: Options) -> str:
    step = step_of(observation).time
    gained = what_if(observation)
    if step is None or not gained:
        return ""

    def gain(value: float) -> str:
        return _cell(f"{value:.3g} ms, {percent(step.share(value))}" if value else "nothing", value)

    body = []
    for one in gained:
        source = source_of(one.key, options)
        code = f" <code>{html.escape(source)}</code>" if source else ""
        where = html.escape(where_of(one.key))
        body.append(
            f"<tr>{_cell(str(one.waits), one.waits)}{gain(one.alone_ms)}{gain(one.together_ms)}{gain(one.last_ms)}"
            f'<td data-v="{where}"><span class="at">{where}</span>{code}</td></tr>'
        )
    heads = ("Waits", "Alone", "With those above", "If it were the last", "Where")
    return f"<section><h2>What removing waits gives (modelled)</h2>{_table(heads, body)}</section>"


def _elsewhere(observation: Observation) -> str:
    body = [
        f"<tr>{_cell(hardware(time.hardware).name, time.hardware)}{_cell(f'{time.step_ms:.3g} ms', time.step_ms)}"
        f"{_cell(f'{time.without_waits_ms:.3g} ms', time.without_waits_ms)}{_cell(time.bound_by, time.bound_by)}</tr>"
        for time in elsewhere(observation, HARDWARE)
    ]
    heads = ("Hardware", "Step", "Without waits", "Bound by")
    return f"<section><h2>The same step elsewhere (modelled)</h2>{_table(heads, body)}</section>" if body else ""


def _errors(observation: Observation) -> str:
    listed = "".join(f"<li>{escaped(one)}</li>" for one in observation.errors)
    return f'<section class="errors"><h2>Notes</h2><ul>{listed}</ul></section>' if listed else ""
