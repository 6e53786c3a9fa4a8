"""A rule's page (its docstring) taken apart: summary, sections, markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from perflint.system.patterns import pattern

if TYPE_CHECKING:
    from perflint.rule_api.rule import Rule

#: Headings of a page, in order; each stands on a line of its own.
HEADINGS = ("Why it is slow", "What to write instead", "When to leave it", "Fix safety")
_HEADING = pattern(rf"(?:\*|#+ )?({'|'.join(HEADINGS)})\*?[.:]?\s*")


class Page(NamedTuple):
    """`sections` maps each heading the page has to the text below it, in the page's order."""

    summary: str
    sections: dict[str, str]


def page_of(rule: type[Rule]) -> Page:
    """A rule's docstring taken apart: the first line is the summary, a heading stands alone in its line."""
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


def fix_of(rule: type[Rule]) -> str:
    """`safe`, `unsafe` or `-`: the word its page begins *Fix safety* with."""
    words = page_of(rule).sections.get("Fix safety", "").replace(":", " ").replace(",", " ").split()
    first = words[0].strip(".").lower() if words else ""
    return first if first in {"safe", "unsafe"} else "-"


def file_of(rule: type[Rule]) -> str:
    """The name of the rule's page among those that `perflint rules --pages` writes."""
    return f"{rule.code}-{rule.name}.md"


def markdown(rule: type[Rule]) -> str:
    """The whole page as markdown with level-two headings."""
    return "\n".join(_as_heading(line) for line in rule.page().splitlines())


def _as_heading(line: str) -> str:
    heading = _HEADING.fullmatch(line)
    return f"## {heading[1]}" if heading else line
