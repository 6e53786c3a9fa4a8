"""Output formats: a `Report` in, text out. One module a format, imported only when it is asked for.

Pure except for `sarif` and `github`, which resolve paths against the disk to make them relative to the git root.
Knows findings and what rules say about themselves; knows neither the engine nor the command line.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from perflint.errors import PerflintError
from perflint.finding import Report

if TYPE_CHECKING:
    from perflint.report.measured import Bar
    from perflint.rule import Rule

#: Names of the output formats, the default first. Each has its module, `as_<name>`.
FORMATS: tuple[str, ...] = ("text", "json", "sarif", "github", "markdown", "html")


@dataclass(frozen=True, slots=True)
class Options:
    """How to print. `width` is in terminal columns; `root` is the git root, None where there is none.

    `silenced` adds findings that a comment silenced, marked as such, to the formats that can say so (sarif).
    `measured` is what is known about rules, by code, for the formats that can show it (html).
    """

    version: str
    rules: Sequence[type[Rule]] = ()
    color: bool = False
    width: int = 100
    statistics: bool = False
    root: Path | None = None
    silenced: bool = False
    measured: Mapping[str, Sequence[Bar]] = field(default_factory=dict)


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
) -> str:
    """The whole output, ending in one newline; empty where the format has nothing to say (`github`, no findings).

    Raises `PerflintError` for a format that is not in `FORMATS`.
    """
    if output_format not in FORMATS:
        raise PerflintError(f"unknown output format {output_format!r}; known: {', '.join(FORMATS)}")
    module = cast(_Format, importlib.import_module(f"perflint.report.as_{output_format}"))
    return module.render(report, Options(version, rules, color, width, statistics, root, silenced, measured or {}))
