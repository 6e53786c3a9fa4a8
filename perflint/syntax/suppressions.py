"""Comments that silence findings, read from comment tokens and never from strings.

x.item()  # perflint: ignore[TPL201, deepcopy-state-dict] why it is meant
# perflint: ignore                 alone on its line: speaks about the line below
# perflint: ignore-file[TPL3]      anywhere in the file
x.item()  # noqa: TPL201           only the perflint codes it names; a bare `noqa` says nothing here
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from perflint.syntax.file import SourceFile
from perflint.system.patterns import pattern

_MENTION = pattern(r"perflint:|noqa", re.IGNORECASE)
_DIRECTIVE = pattern(r"#\s*perflint:\s*(?P<verb>[\w-]*)\s*(?P<open>\[)?(?P<rest>[^#\r\n]*)", re.IGNORECASE)
_NOQA = pattern(r"#\s*noqa\s*:\s*(?P<codes>[A-Z]+[0-9]+(?:[\s,]+[A-Z]+[0-9]+)*)(?P<reason>[^#]*)", re.IGNORECASE)
_OUR_CODE = pattern(r"TPL\d+", re.IGNORECASE)
_OURS = pattern(r"tpl\d")
_SELECTOR = pattern(r"[A-Za-z][A-Za-z0-9-]*")


class Suppression(NamedTuple):
    """One comment. `selectors` are codes, beginnings of codes or names; empty means every rule.

    `line` and `column` (from 1) are where the comment's directive begins. `kept` are words of its list that stay
    whatever becomes of `selectors`: codes of other tools, and of an unused comment those that are of use. `listed` are
    the columns of the list, the end not counted.
    """

    line: int
    column: int
    selectors: tuple[str, ...]
    reason: str = ""
    whole_file: bool = False
    is_noqa: bool = False
    kept: tuple[str, ...] = ()
    listed: tuple[int, int] = (0, 0)

    def names(self, code: str, name: str) -> bool:
        return not self.selectors or any(_matches(one, code, name) for one in self.selectors)


#: A comment, and code and name of a rule that it silenced.
Used: TypeAlias = "tuple[Suppression, str, str]"


class Malformed(NamedTuple):
    """A comment that means to silence something and does not read as such.

    Where a `word` of its list is a rule's name misspelt, `meant` is that name.
    """

    line: int
    column: int
    message: str
    word: str = ""
    meant: str = ""


def _matches(selector: str, code: str, name: str) -> bool:
    return selector.lower() == name or code.startswith(selector.upper())


@dataclass(frozen=True)
class Suppressions:
    """All such comments of one file."""

    each: tuple[Suppression, ...] = ()
    malformed: tuple[Malformed, ...] = ()
    _lines: dict[int, list[Suppression]] = field(default_factory=dict, repr=False)
    _comment_lines: AbstractSet[int] = frozenset()

    @classmethod
    def read(cls, source: SourceFile) -> Suppressions:
        """Read the comments of `source`, which need not parse."""
        text = source.text.lower()  # a search that minds no case takes ten times as long
        # Nearly every `noqa` is of other tools, and finding the comments takes longer than parsing.
        if "perflint:" not in text and ("noqa" not in text or not _OURS.search(text)):
            return _NONE
        each: list[Suppression] = []
        malformed: list[Malformed] = []
        alone_lines = set()
        for line, column, comment, alone in _comments(source.text):
            if alone:
                alone_lines.add(line)
            if _MENTION.search(comment):
                _read_comment(comment, line, column, each, malformed)
        lines: dict[int, list[Suppression]] = {}
        for one in each:
            if not one.whole_file:
                lines.setdefault(one.line, []).append(one)
        return cls(tuple(each), tuple(malformed), lines, alone_lines)

    def silences(self, code: str, name: str, lines: tuple[int, int]) -> Suppression | None:
        """The comment that silences rule `code` (`name`) at the statement on `lines` (first and last, both counted).

        For a compound statement these are the lines of its header. A comment on the statement's lines comes before
        one alone above it, that before one for the whole file.
        """
        if not self.each:
            return None
        for one in self._at(lines):
            if one.names(code, name):
                return one
        return next((one for one in self.each if one.whole_file and one.names(code, name)), None)

    def _at(self, lines: tuple[int, int]) -> Iterable[Suppression]:
        first, last = lines
        if last - first > len(self._lines):
            inside: Iterable[int] = [line for line in sorted(self._lines) if first <= line <= last]
        else:
            inside = range(first, last + 1)
        for line in inside:
            yield from self._lines.get(line, ())
        # Several may stand above one statement, each alone on its line.
        above = first - 1
        while above in self._comment_lines:
            yield from self._lines.get(above, ())
            above -= 1

    def unused(
        self, ran: AbstractSet[str], used: Collection[Used], *, everything_ran: bool = False
    ) -> list[Suppression]:
        """Comments that silenced nothing although the rules they name ran, each with the `selectors` that did not.

        `ran` holds the codes and names of the rules that ran. A comment that names no rule, or the beginning of
        codes, speaks of every rule, so it counts only when `everything_ran`.
        """
        known = {one.lower() for one in ran}
        found = []
        for one in self.each:
            silenced = [(code, name) for by, code, name in used if by == one]
            idle = tuple(
                word
                for word in one.selectors
                if (everything_ran or word.lower() in known) and not any(_matches(word, *it) for it in silenced)
            )
            if idle:
                useful = tuple(word for word in one.selectors if word not in idle)
                found.append(one._replace(selectors=idle, kept=(*useful, *one.kept)))
            elif not one.selectors and everything_ran and not silenced:
                found.append(one)
        return found


_NONE = Suppressions()


def _comments(text: str) -> Iterable[tuple[int, int, str, bool]]:
    """Line, column, text and whether it is alone on its line, of every comment."""
    # Imported late: most files have no such comment.
    from perflint.syntax.scan import Kind, scan

    starts = [0, *(end.end() for end in re.finditer(r"\r\n|\r|\n", text))]
    for token in scan(text):
        if token.kind is Kind.COMMENT:
            line = bisect_left(starts, token.start + 1)
            begin = starts[line - 1]
            before = text[begin : token.start]
            yield line, token.start - begin + 1, text[token.start : token.end], not before.strip()


def _read_comment(comment: str, line: int, column: int, each: list[Suppression], malformed: list[Malformed]) -> None:
    for match in _DIRECTIVE.finditer(comment):
        at = column + match.start()
        fault = _read_directive(match, line, at, each)
        if fault:
            malformed.append(Malformed(line, at, fault))
    for match in _NOQA.finditer(comment):
        words = re.split(r"[\s,]+", match["codes"])
        codes = tuple(code.upper() for code in words if _OUR_CODE.fullmatch(code))
        if codes:
            reason = match["reason"].strip()
            others = tuple(code for code in words if not _OUR_CODE.fullmatch(code))
            at = column + match.start()
            listed = (column + match.start("codes"), column + match.end("codes"))
            each.append(Suppression(line, at, codes, reason, is_noqa=True, kept=others, listed=listed))


def _read_directive(match: re.Match[str], line: int, column: int, each: list[Suppression]) -> str | None:
    """Append what the directive says; returns what is wrong with it instead when it does not read."""
    verb = match["verb"].lower()
    if verb not in {"ignore", "ignore-file"}:
        return f"unknown comment 'perflint: {match['verb']}'; there are 'ignore' and 'ignore-file'"
    selectors: tuple[str, ...] = ()
    listed = (0, 0)
    reason = match["rest"].strip()
    if match["open"]:
        inside, closing, reason = match["rest"].partition("]")
        begin = column + match.start("rest") - match.start()
        listed = (begin, begin + len(inside))
        selectors = tuple(word.strip() for word in inside.split(",") if word.strip())
        if not closing:
            return "'perflint: ignore[' without its ']'"
        if not selectors:
            return "'perflint: ignore[]' names no rule"
        wrong = next((word for word in selectors if not _SELECTOR.fullmatch(word)), None)
        if wrong is not None:
            return f"{wrong!r} in 'perflint: ignore[...]' is neither a code nor a name"
    whole_file = verb == "ignore-file"
    each.append(Suppression(line, column, selectors, reason.strip(" -:"), whole_file, listed=listed))
    return None
