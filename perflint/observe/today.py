"""Where observed lines are today: the texts of files, and which functions are still as they were observed."""

from __future__ import annotations

from collections.abc import Callable

from perflint.finding import Finding, Span
from perflint.observe.conditional import conditional_parts
from perflint.observe.functions import innermost, regions, statement_lines
from perflint.observe.trace import Observation, Region
from perflint.syntax.file import SourceFile
from perflint.syntax.suppressions import Suppression, Suppressions


class Today:
    """Answers for the files of one observation."""

    def __init__(self, observation: Observation, text_of: Callable[[str], str | None]) -> None:
        self._observed = observation.regions
        self._text_of = text_of
        self._texts: dict[str, str] = {}
        self._comments: dict[str, Suppressions] = {}
        self._conditional: dict[str, tuple[Span, ...]] = {}
        self._today: dict[str, tuple[Region, ...]] = {}
        self._now: dict[str, dict[Region, Region]] = {}
        #: Observed functions that are not what they were, by path.
        self.changed: dict[str, list[Region]] = {}

    def text(self, path: str) -> str:
        if path not in self._texts:
            self._texts[path] = self._text_of(path) or ""
        return self._texts[path]

    def conditional(self, path: str) -> tuple[Span, ...]:
        """Parts of lines that may be left out where the line runs."""
        if path not in self._conditional:
            self._conditional[path] = conditional_parts(self.text(path))
        return self._conditional[path]

    def suppression(self, finding: Finding) -> Suppression | None:
        """The comment that silences a finding: on a line of the statement that it begins in."""
        text = self.text(finding.path)
        if finding.path not in self._comments:
            self._comments[finding.path] = Suppressions.read(SourceFile(finding.path, text))
        comments = self._comments[finding.path]
        if not comments.each:
            return None
        return comments.silences(finding.code, finding.name, statement_lines(text, finding.span.line))

    def line(self, path: str, line: int) -> int | None:
        """Today's number of an observed line; None if its function is not what was observed."""
        self._compare(path)
        region = innermost(self._observed.get(path, ()), line)
        now = None if region is None else self._now[path].get(region)
        return None if region is None or now is None else line - region.line + now.line

    def is_observed(self, path: str, line: int) -> bool:
        """Whether today's line stands in a function that was observed as it is."""
        self._compare(path)
        region = innermost(self._today[path], line)
        return region is not None and region in self._now[path].values()

    def is_changed(self, path: str, line: int) -> bool:
        """Whether today's line stands in what was another text when it was observed."""
        self._compare(path)
        region = innermost(self._today[path], line)
        if region is None or region in self._now[path].values():
            return False
        others = self.changed.get(path, ())
        return any(one.name == region.name and (one.name or _overlap(one, region)) for one in others)

    def _compare(self, path: str) -> None:
        if path in self._now:
            return
        self._today[path] = regions(self.text(path))
        now = self._now[path] = {}
        free = list(self._today[path])
        for region in self._observed.get(path, ()):
            same = [one for one in free if one.hash == region.hash]
            if same:
                # Of functions with the same text, the nearest.
                nearest = min(same, key=lambda one: (one.name != region.name, abs(one.line - region.line)))
                now[region] = nearest
                free.remove(nearest)
            else:
                self.changed.setdefault(path, []).append(region)


def _overlap(one: Region, other: Region) -> bool:
    return one.line <= other.end_line and other.line <= one.end_line
