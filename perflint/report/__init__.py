"""Output formats: a `Report` in, text out. One module a format, imported only when it is asked for.

Pure except for `sarif` and `github`, which resolve paths against the disk to make them relative to the git root.
Knows findings and what rules say about themselves; knows neither the engine nor the command line.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from perflint.errors import PerflintError
from perflint.finding import Finding, Report
from perflint.report.counts import Counts
from perflint.report.order import EVERYTHING, Layout, laid_out

if TYPE_CHECKING:
    from perflint.report.measured import Bar
    from perflint.rule_api.rule import Rule

#: Names of the output formats, the default first. Each has its module, `as_<name>` with `_` for `-`.
FORMATS: tuple[str, ...] = (
    "text",
    "full",
    "concise",
    "grouped",
    "json",
    "json-lines",
    "sarif",
    "github",
    "gitlab",
    "junit",
    "rdjson",
    "markdown",
    "html",
)

#: Those of them that can count findings by rule instead of listing them.
COUNTING: tuple[str, ...] = ("text", "full", "concise", "grouped", "json")


@dataclass(frozen=True, slots=True)
class Options:
    """How to print. `width` is in terminal columns; `root` is the git root, None where there is none.

    `silenced` adds findings that a comment silenced, marked as such, to the formats that can say so (sarif).
    `measured` is what is known about rules, by code, for the formats that can show it (html).
    `layout` is the order of findings, their groups and how many are printed. `seconds` is how long the run took, None
    where the output is to be the same each time. `links` makes places links that terminals open (OSC 8). `fails` says
    whether a finding makes exit code 1; None where every finding that is printed does, or nobody asked.
    `step_picture` is markup of one observed step, for the formats that can show it (html).
    `counts` counts the findings that are printed, those of a cluster one by one. `notes` are paragraphs for people, on
    the program as a whole (text).
    """

    version: str
    rules: Sequence[type[Rule]] = ()
    color: bool = False
    width: int = 100
    statistics: bool = False
    root: Path | None = None
    silenced: bool = False
    measured: Mapping[str, Sequence[Bar]] = field(default_factory=dict)
    layout: Layout = EVERYTHING
    seconds: float | None = None
    links: bool = False
    fails: Callable[[Finding], bool] | None = None
    step_picture: str = ""
    counts: Counts | None = None
    notes: Sequence[str] = ()


class _Format(Protocol):
    def render(self, report: Report, options: Options) -> str: ...


def render(
    report: Report,
    output_format: str,
    rules: Sequence[type[Rule]],
    *,
    color: bool = False,
    width: int = 100,
    statistics: bool = False,
    root: Path | None = None,
    version: str,
    silenced: bool = False,
    measured: Mapping[str, Sequence[Bar]] | None = None,
    layout: Layout = EVERYTHING,
    seconds: float | None = None,
    links: bool = False,
    fails: Callable[[Finding], bool] | None = None,
    step_picture: str = "",
    notes: Sequence[str] = (),
) -> str:
    """The whole output, ending in one newline; empty where the format has nothing to say (`github`, no findings).

    Raises `PerflintError` for a format that is not in `FORMATS`.
    """
    if output_format not in FORMATS:
        raise PerflintError(f"unknown output format {output_format!r}; known: {', '.join(FORMATS)}")
    module = cast(_Format, importlib.import_module(f"perflint.report.as_{output_format.replace('-', '_')}"))
    shown, counts = laid_out(report, layout, output_format)
    mixed = fails if fails is not None and not all(map(fails, shown.findings)) else None
    options = Options(
        version, rules, color, width, statistics, root, silenced, measured or {}, layout, seconds, links, mixed
    )
    options = replace(options, step_picture=step_picture, counts=counts, notes=notes)
    return module.render(shown, options)
