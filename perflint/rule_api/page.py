"""Parses a rule's page (its docstring) into a summary and sections, and renders it as markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from perflint.system.patterns import pattern

if TYPE_CHECKING:
    from perflint.rule_api.rule import Rule

#: All sections of a page, in the order in which they are shown. The docstring holds all but *Example*, which comes from
#: the rule's fixtures, so that no example is shown that has not been tested.
HEADINGS = (
    "What it does",
    "Why is this slow?",
    "Example",
    "What to do",
    "Fix safety",
    "Not reported",
    "Known limitations",
    "Measured",
    "References",
)
#: Sections that every docstring has.
REQUIRED = ("What it does", "Why is this slow?", "What to do", "Fix safety", "Not reported")
_HEADING = pattern(rf"(?:\*|#+ )?({'|'.join(HEADINGS).replace('?', chr(92) + '?')})\*?[.:]?\s*")


class Page(NamedTuple):
    """`sections` maps each heading of the docstring to the text below it, in the docstring's order."""

    summary: str
    sections: dict[str, str]


def page_of(rule: type[Rule]) -> Page:
    """Parses a rule's docstring: the first line is the summary; a heading stands alone on its line."""
    lines = rule.page().splitlines()
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines[1:]:
        heading = _HEADING.fullmatch(line)
        if heading:
            current = sections.setdefault(heading[1], [])
        else:
            current.append(line)
    return Page(lines[0] if lines else "", {name: "\n".join(body).strip() for name, body in sections.items()})


def in_order(sections: Mapping[str, str]) -> list[tuple[str, str]]:
    """The sections that have text, in the order of `HEADINGS`."""
    return [(heading, sections[heading]) for heading in HEADINGS if sections.get(heading)]


def fix_of(rule: type[Rule]) -> str:
    """`safe`, `unsafe` or `-`: the first word of the section *Fix safety*."""
    words = page_of(rule).sections.get("Fix safety", "").replace(":", " ").replace(",", " ").split()
    first = words[0].strip(".").lower() if words else ""
    return first if first in {"safe", "unsafe"} else "-"


def file_of(rule: type[Rule]) -> str:
    """The name of the rule's file among those that `perflint rules --pages` writes."""
    return f"{rule.code}-{rule.name}.md"


def markdown(rule: type[Rule], example: str = "") -> str:
    """The page as markdown with level-two headings; `example` is the text of the section *Example*."""
    page = page_of(rule)
    sections = in_order({**page.sections, "Example": example})
    return "\n\n".join([page.summary, *(f"## {heading}\n\n{text}" for heading, text in sections)])
