"""Names, strings, comments and brackets of a text, found without a grammar.

Reads what the standard tokenizer cannot: f-strings with the syntax of later Pythons, and text that does not parse.
Never fails on content: a string without an end is taken to end with its line (or the file, when triple-quoted).
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field

from perflint.system.patterns import pattern

#: Strings in replacement fields nested deeper than this are no code that anybody runs.
_DEEPEST = 40
#: After so many formatted strings that do not read as such, the rest are plain: each may have cost a look at the
#: whole text.
_PATIENCE = 20

_TOKEN = pattern(
    r"""
      (?P<skip>[ \t\f\ufeff]+|\\(?:\r\n|\r|\n))
    | (?P<newline>\r\n|\r|\n)
    | (?P<comment>\#[^\r\n]*)
    | (?P<prefix>[rRbBuUfFtT]{0,2})(?P<quote>\"\"\"|'''|"|')
    | (?P<name>\w+)
    | (?P<op>==|!=|<=|>=|:=|->|\*\*|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_REST = {
    '"': pattern(r'[^\\\r\n"]*(?:\\(?:\r\n|.)[^\\\r\n"]*)*("?)', re.DOTALL),
    "'": pattern(r"[^\\\r\n']*(?:\\(?:\r\n|.)[^\\\r\n']*)*('?)", re.DOTALL),
    '"""': pattern(r'[^\\"]*(?:(?:\\.|"(?!""))[^\\"]*)*("""|\\?\Z)', re.DOTALL),
    "'''": pattern(r"[^\\']*(?:(?:\\.|'(?!''))[^\\']*)*('''|\\?\Z)", re.DOTALL),
}
_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_LITERAL = pattern(r"""[^\\{}'"\r\n]+""")
_CONVERSION = pattern(r"!\s*(\w*)\s*")
_AFTER_DEBUG = pattern(r"\s*(?:!(?!=)|[:}])")


class Kind(enum.Enum):
    """What a token is. `NEWLINE` is every line end, inside brackets too."""

    NAME = enum.auto()
    STRING = enum.auto()
    COMMENT = enum.auto()
    NEWLINE = enum.auto()
    OP = enum.auto()


@dataclass(slots=True)
class Literal:
    """Literal text of a formatted string, as written."""

    start: int
    end: int


@dataclass(slots=True)
class Field:
    """A replacement field: `{` at `start`, its expression up to `stop`, its `}` just before `end`.

    `debug` is set for `{x=}`. `conversion` is `r`, `s`, `a` or empty. `spec` is None without a `:`.
    """

    start: int
    stop: int
    end: int = -1
    debug: bool = False
    conversion: str = ""
    spec: list[Literal | Field] | None = None
    spec_start: int = -1
    tokens: list[Token] = field(default_factory=list)


@dataclass(slots=True)
class Token:
    """A piece of text. `parts` is None but for formatted strings; `closed` is False for a string without an end.

    `opens` is 1 for an opening bracket, -1 for a closing one.
    """

    kind: Kind
    start: int
    end: int
    prefix: str = ""
    quote: str = ""
    parts: list[Literal | Field] | None = None
    closed: bool = True
    opens: int = 0


def scan(text: str) -> list[Token]:
    """All tokens of `text` in order, white space left out."""
    scanner = _Scanner(text)
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        position = scanner.token(position, tokens, 0)
    return tokens


def logical_line_end(text: str, position: int) -> int:
    """Where the line that begins at `position` ends, those counted in that brackets and strings hold together."""
    scanner = _Scanner(text)
    depth = 0
    while position < len(text):
        tokens: list[Token] = []
        position = scanner.token(position, tokens, 0)
        for token in tokens:
            depth += token.opens
            if token.kind is Kind.NEWLINE and depth <= 0:
                return position
    return position


class _MalformedError(Exception):
    """A formatted string that does not read as one; it is then a plain string."""


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self._malformed = 0

    def token(self, position: int, tokens: list[Token], depth: int) -> int:
        """Append the token at `position`, if there is one, and return where it ends."""
        match = _TOKEN.match(self.text, position)
        assert match is not None  # the last alternative takes any character
        end = match.end()
        kind = match.lastgroup
        if kind == "name":
            tokens.append(Token(Kind.NAME, position, end))
        elif kind == "op":
            tokens.append(Token(Kind.OP, position, end, opens=_BRACKETS.get(match["op"], 0)))
        elif kind == "quote":
            string = self._string(position, match["prefix"].lower(), match["quote"], end, depth)
            tokens.append(string)
            end = string.end
        elif kind == "comment":
            tokens.append(Token(Kind.COMMENT, position, end))
        elif kind == "newline":
            tokens.append(Token(Kind.NEWLINE, position, end))
        return end

    def _string(self, start: int, prefix: str, quote: str, body: int, depth: int) -> Token:
        if ("f" in prefix or "t" in prefix) and self._malformed < _PATIENCE:
            try:
                parts, end = self._parts(body, quote, raw="r" in prefix, depth=depth)
            except _MalformedError:
                # The outermost one is retried as plain text, else every level would try twice.
                if depth:
                    raise
                self._malformed += 1
            else:
                return Token(Kind.STRING, start, end, prefix, quote, parts)
        rest = _REST[quote].match(self.text, body)
        assert rest is not None  # every pattern matches the empty text
        closed = rest[1] == quote
        return Token(Kind.STRING, start, rest.end(), prefix, quote, None, closed)

    def _parts(self, position: int, quote: str, *, raw: bool, depth: int) -> tuple[list[Literal | Field], int]:
        """The literals and fields up to the closing `quote`, and where that ends."""
        text = self.text
        parts: list[Literal | Field] = []
        start = position
        while True:
            if text.startswith(quote, position):
                if position > start:
                    parts.append(Literal(start, position))
                return parts, position + len(quote)
            if text.startswith(("{{", "}}"), position):
                position += 2
            elif text.startswith("{", position):
                if position > start:
                    parts.append(Literal(start, position))
                one = self._field(position, quote, raw=raw, depth=depth)
                parts.append(one)
                start = position = one.end
            else:
                position = self._literal(position, quote, raw=raw)

    def _literal(self, position: int, quote: str, *, raw: bool) -> int:
        """Step over one piece of literal text; raises _MalformedError where the string cannot go on."""
        text = self.text
        match = _LITERAL.match(text, position)
        if match:
            return match.end()
        character = text[position : position + 1]
        if character == "" or (character in "\r\n" and len(quote) == 1) or character == "}":
            raise _MalformedError
        if character == "\\":
            if text.startswith("\\N{", position) and not raw:
                end = text.find("}", position)
                if end < 0:
                    raise _MalformedError
                return end + 1
            # `\{` is a backslash and a field, in raw strings and in others.
            if text[position + 1 : position + 2] in {"{", "}"}:
                return position + 1
            return position + (3 if text.startswith("\r\n", position + 1) else 2)
        return position + 1

    def _field(self, start: int, quote: str, *, raw: bool, depth: int) -> Field:
        if depth > _DEEPEST:
            raise _MalformedError
        text = self.text
        tokens: list[Token] = []
        nesting = 0
        position = start + 1
        while True:
            if position >= len(text):
                raise _MalformedError
            character = text[position]
            if nesting == 0 and self._ends_expression(position):
                break
            if character in "([{":
                nesting += 1
            elif character in ")]}":
                nesting -= 1
            position = self.token(position, tokens, depth + 1)
            if tokens and tokens[-1].kind is Kind.STRING and not tokens[-1].closed:
                raise _MalformedError
        one = Field(start, position, tokens=tokens)
        if not tokens:
            raise _MalformedError
        if text[position] == "=":
            one.debug = True
            position = self._space(position + 1)
        conversion = _CONVERSION.match(text, position)
        if conversion:
            one.conversion = conversion[1]
            position = conversion.end()
        if text.startswith(":", position):
            one.spec_start = position + 1
            one.spec, position = self._spec(position + 1, quote, raw=raw, depth=depth + 1)
        if not text.startswith("}", position):
            raise _MalformedError
        one.end = position + 1
        return one

    def _ends_expression(self, position: int) -> bool:
        text = self.text
        character = text[position]
        if character in "}:":
            return True
        if character == "!":
            return not text.startswith("!=", position)
        # `{x=}` shows the expression; `{x == y}` and `{f(k=1)}` do not come here or do not match.
        return character == "=" and _AFTER_DEBUG.match(text, position + 1) is not None

    def _space(self, position: int) -> int:
        while self.text[position : position + 1].isspace():
            position += 1
        return position

    def _spec(self, position: int, quote: str, *, raw: bool, depth: int) -> tuple[list[Literal | Field], int]:
        """The format specification up to its `}`, which is not part of it."""
        text = self.text
        parts: list[Literal | Field] = []
        start = position
        while True:
            if text.startswith("{", position) or text.startswith("}", position):
                if position > start:
                    parts.append(Literal(start, position))
                if text[position] == "}":
                    return parts, position
                one = self._field(position, quote, raw=raw, depth=depth)
                parts.append(one)
                start = position = one.end
            elif text.startswith(quote, position):
                raise _MalformedError
            else:
                position = self._literal(position, quote, raw=raw)
