"""What `perflint observe` prints: an `Observation` in, text out. JSON is the document itself, `observe.document`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from perflint.errors import PerflintError
from perflint.observe.trace import Observation

FORMATS: tuple[str, ...] = ("text", "json", "html")


@dataclass(frozen=True, slots=True)
class Options:
    """How to print. `what_if` adds what removing each line's waits gives; `hardware` are accelerators (keys of the
    table) that the step is replayed on besides. `text_of` gives the source text of a file, None where there is none.
    `most` is the number of lines in a table of the text format. `findings` has the code of the rule that found a line
    of the observation, by index into its `lines`; None where nobody looked.
    """

    what_if: bool = False
    hardware: tuple[str, ...] = ()
    color: bool = False
    width: int = 100
    most: int = 20
    findings: Mapping[int, str] | None = None
    text_of: Callable[[str], str | None] = lambda _path: None


def render(observation: Observation, output_format: str, options: Options | None = None) -> str:
    """The whole output, ending in one newline. Raises PerflintError for a format that is not in `FORMATS`."""
    if output_format == "json":
        from perflint.observe.document import as_json

        return as_json(observation, None if options is None else options.findings)
    if output_format == "text":
        from perflint.observe.report.as_text import as_text

        return as_text(observation, options or Options())
    if output_format == "html":
        from perflint.observe.report.as_html import as_html

        return as_html(observation, options or Options())
    raise PerflintError(f"unknown output format {output_format!r}; known: {', '.join(FORMATS)}")
